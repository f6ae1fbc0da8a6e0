import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { textWith } from '../../test/harness/expected.ts';
import { applyDocument, makeProject } from '../../test/harness/pipeline.ts';
import { makeTenantDatabase, type TenantDatabase } from '../../test/harness/tenant-database.ts';
import { newId } from '../kernel/id.ts';
import { type Db, sql } from '../kernel/sql.ts';
import { DocumentCache } from './document/cache.ts';
import { readDefinitions } from './task-definitions.ts';

let database: TenantDatabase;
let db: Db;
beforeAll(async () => {
  database = await makeTenantDatabase();
  db = database.db;
});
afterAll(() => database.close());

const day = (n: number): string => new Date(Date.UTC(2026, 0, n)).toISOString();
const trigger = (name: string, more: object = {}) => ({ name, start: day(1), period: '1d', ...more });
type Parts = { project: string; name?: string; uuid?: string; paused?: boolean; triggers?: object[]; tasks?: object[] };
const documentOf = ({ name = 'job', triggers = [], tasks = [{ name: 'a' }], ...rest }: Parts) => ({
  name,
  description: '',
  triggers,
  tasks,
  ...rest,
});
const apply = (parts: Parts, options?: { dryRun?: boolean; at?: Date }) =>
  applyDocument(db, documentOf(parts), options);

async function newProject(): Promise<string> {
  const name = `p ${newId()}`;
  await makeProject(db, name);
  return name;
}

/** How many rows each table of the schema holds. */
async function rowCounts(): Promise<Record<string, number>> {
  const tables = await db.rows<{ name: string }>(sql`
    select c.relname as name from pg_class c
     where c.relnamespace = 'millrace'::regnamespace and c.relkind = 'r' order by 1`);
  const counts: Record<string, number> = {};
  for (const { name } of tables) {
    const { rows } = await database.pool.query<{ n: number }>(`select count(*) as n from ${name}`);
    counts[name] = rows[0]?.n ?? -1;
  }
  return counts;
}

type Part = { name: string; removed: boolean; paused?: boolean };
const tasksOf = (job: string): Promise<Part[]> =>
  db.rows(sql`select name, removed_at is not null as removed, paused from task where job_id = ${job} order by name`);
const triggersOf = (job: string): Promise<(Part & { latest: Date | null })[]> =>
  db.rows(sql`select name, removed_at is not null as removed, latest from trigger where job_id = ${job} order by name`);
const edgesOf = async (job: string): Promise<string[]> => {
  const rows = await db.rows<{ edge: string }>(sql`
    select p.name || ' ' || e.kind || ' ' || c.name || ' ' || e.offset_ms as edge
      from task_edge e
      join task p on p.id = e.parent_id
      join task c on c.id = e.child_id
     where c.job_id = ${job}
    union all
    select t.name || ' trigger ' || c.name || ' ' || e.offset_ms
      from trigger_edge e
      join trigger t on t.id = e.trigger_id
      join task c on c.id = e.task_id
     where c.job_id = ${job}
     order by 1`);
  return rows.map((row) => row.edge);
};
const eventsOf = async (job: string): Promise<string[]> =>
  (await db.rows<{ type: string }>(sql`select type from event where subject = ${job} order by seq`)).map(
    (row) => row.type,
  );

describe('applying a document', () => {
  it('a new document creates the job with its triggers, tasks and edges, and appends an event', async () => {
    const project = await newProject();
    const tasks = [
      { name: 'a', depends: ['trigger/t@1h'] },
      { name: 'b', depends: ['task/a'], depends_failure: ['task/a@1d'], depends_done: ['task/b@1d'] },
    ];
    const applied = await apply({ project, triggers: [trigger('t')], tasks });
    expect(applied).toMatchObject({ version: 1, outcome: 'created', dry_run: false, warnings: [] });
    expect(await edgesOf(applied.id)).toEqual([
      'a failure b 86400000',
      'a success b 0',
      'b done b 86400000',
      't trigger a 3600000',
    ]);
    expect(await eventsOf(applied.id)).toEqual(['job.created']);
  });

  it('an unchanged document makes no version, no event and no change', async () => {
    const project = await newProject();
    const parts = { project, triggers: [trigger('t')], tasks: [{ name: 'a', depends: ['trigger/t'] }] };
    const first = await apply(parts);
    const before = await rowCounts();
    expect(await apply(parts)).toMatchObject({ id: first.id, version: 1, outcome: 'unchanged', changes: [] });
    expect(await rowCounts()).toEqual(before);
  });

  it('a changed document makes the next version and lists its changes; old versions stay', async () => {
    const project = await newProject();
    const { id } = await apply({ project });
    const second = await apply({ project, tasks: [{ name: 'a', timeout: '1h' }] });
    expect(second).toMatchObject({
      id,
      version: 2,
      outcome: 'changed',
      changes: [{ path: 'tasks.a.timeout', change: 'added' }],
    });
    const versions = await db.rows<{ version: number; actor: string }>(sql`
      select version, actor from job_version where job_id = ${id} order by version`);
    expect(versions).toEqual([
      { version: 1, actor: 'test' },
      { version: 2, actor: 'test' },
    ]);
    expect(await db.rows(sql`select version from task where job_id = ${id}`)).toEqual([{ version: 2 }]);
  });

  it('a dry run changes nothing, and returns what the real application would', async () => {
    const project = await newProject();
    const before = await rowCounts();
    const dry = await apply({ project, triggers: [trigger('t')] }, { dryRun: true });
    expect(dry).toMatchObject({ version: 1, outcome: 'created', dry_run: true });
    expect(await rowCounts()).toEqual(before);
    const { id } = await apply({ project, tasks: [{ name: 'a' }, { name: 'b' }] });
    const then = await rowCounts();
    expect(await apply({ project, tasks: [{ name: 'a' }] }, { dryRun: true })).toMatchObject({
      id,
      version: 2,
      outcome: 'changed',
      changes: [{ path: 'tasks.b', change: 'removed' }],
    });
    expect(await rowCounts()).toEqual(then);
    expect((await tasksOf(id)).map((task) => task.removed)).toEqual([false, false]);
  });

  it('a part that the document no longer names is removed, and revived by its name with its marks', async () => {
    const project = await newProject();
    const full = {
      project,
      triggers: [trigger('t'), trigger('u')],
      tasks: [
        { name: 'a', depends: ['trigger/t'] },
        { name: 'b', depends: ['task/a'] },
      ],
    };
    const { id } = await apply(full);
    await db.exec(sql`update trigger set latest = ${day(5)}, earliest = ${day(1)} where job_id = ${id} and name = 't'`);
    const [{ id: oldTask } = { id: '' }] = await db.rows<{ id: string }>(
      sql`select id from task where job_id = ${id} and name = 'b'`,
    );
    await apply({ project, triggers: [trigger('u')], tasks: [{ name: 'a' }] });
    expect((await triggersOf(id)).map((t) => [t.name, t.removed])).toEqual([
      ['t', true],
      ['u', false],
    ]);
    expect((await tasksOf(id)).map((t) => [t.name, t.removed, t.paused])).toEqual([
      ['a', false, false],
      ['b', true, true],
    ]);
    expect(await edgesOf(id)).toEqual([]);
    await apply(full);
    expect((await triggersOf(id)).map((t) => [t.name, t.removed, t.latest?.toISOString()])).toEqual([
      ['t', false, day(5)],
      ['u', false, undefined],
    ]);
    expect((await tasksOf(id)).map((t) => [t.name, t.removed, t.paused])).toEqual([
      ['a', false, false],
      ['b', false, false],
    ]);
    expect(await db.rows(sql`select id from task where job_id = ${id} and name = 'b'`)).toEqual([{ id: oldTask }]);
    expect(await edgesOf(id)).toEqual(['a success b 0', 't trigger a 0']);
  });

  it('a document with a uuid renames its job, and revives a deleted one, also in another project', async () => {
    const [project, other] = [await newProject(), await newProject()];
    const uuid = newId();
    await apply({ project, uuid, name: 'old' });
    expect(await apply({ project, uuid, name: 'new' })).toMatchObject({ id: uuid, version: 2, outcome: 'changed' });
    await expect(apply({ project: other, uuid, name: 'new' })).rejects.toMatchObject({ code: 'conflict' });
    await db.exec(sql`select * from delete_jobs(${[uuid]}::uuid[], 'test', ${new Date()})`);
    await apply({ project: other, uuid, name: 'back' });
    const [row] = await db.rows(sql`
      select project.name as project, job.name, job.deleted_at from job join project on project.id = job.project_id where job.id = ${uuid}`);
    expect(row).toEqual({ project: other, name: 'back', deleted_at: null });
    expect((await tasksOf(uuid)).map((task) => [task.removed, task.paused])).toEqual([[false, false]]);
  });

  it('a name that another job of the project has is a conflict, and the error gives the name', async () => {
    const project = await newProject();
    await apply({ project, name: 'taken' });
    const before = await rowCounts();
    await expect(apply({ project, uuid: newId(), name: 'taken' })).rejects.toMatchObject({
      code: 'conflict',
      message: textWith('taken'),
    });
    expect(await rowCounts()).toEqual(before);
  });

  it('a project that does not exist is rejected with the path of its field', async () => {
    await expect(apply({ project: 'nowhere' })).rejects.toMatchObject({
      code: 'bad_reference',
      faults: [{ path: 'project' }],
    });
  });
});

describe('concurrent applications', () => {
  it('applications of an existing job run one after another, and each makes its own version', async () => {
    const project = await newProject();
    const { id } = await apply({ project });
    const applied = await Promise.all(['b', 'c', 'd'].map((name) => apply({ project, tasks: [{ name }] })));
    expect(applied.map((a) => a.version).toSorted((a, b) => a - b)).toEqual([2, 3, 4]);
    const last = applied.find((a) => a.version === 4);
    const left = (await tasksOf(id)).filter((task) => !task.removed);
    expect(left).toHaveLength(1);
    expect(last?.changes.some((change) => change.path === `tasks.${left[0]?.name}`)).toBe(true);
  });

  it('applications of a new job run one after another: one creates it, the others change it', async () => {
    for (const uuid of [undefined, newId()]) {
      const project = await newProject();
      const applied = await Promise.all(
        ['b', 'c', 'd'].map((name) => apply({ project, tasks: [{ name }], ...(uuid === undefined ? {} : { uuid }) })),
      );
      expect(applied.map((a) => a.version).toSorted((a, b) => a - b)).toEqual([1, 2, 3]);
      expect(new Set(applied.map((a) => a.id)).size).toBe(1);
      expect(applied.map((a) => a.outcome).toSorted()).toEqual(['changed', 'changed', 'created']);
    }
  });

  it('applications of jobs that refer to each other do not deadlock', async () => {
    const project = await newProject();
    for (let round = 0; round < 10; round++) {
      const name = (n: number) => `j${n} ${round}`;
      for (const n of [1, 2]) await apply({ project, name: name(n), tasks: [{ name: 'a' }, { name: 'b' }] });
      const crossed = (mine: number, other: number, task: string) =>
        apply({ project, name: name(mine), tasks: [{ name: task, depends: [`${name(other)}/task/${task}`] }] });
      const outcomes = await Promise.allSettled([
        crossed(1, 2, 'a'),
        crossed(2, 1, 'a'),
        crossed(1, 2, 'b'),
        crossed(2, 1, 'b'),
      ]);
      for (const outcome of outcomes)
        if (outcome.status === 'rejected') expect(outcome.reason).toMatchObject({ code: 'bad_reference' });
    }
  });
});

describe('references', () => {
  it('a reference may lead to another job and another project', async () => {
    const [project, other] = [await newProject(), await newProject()];
    await apply({ project, name: 'up', triggers: [trigger('t')], tasks: [{ name: 'x' }] });
    await apply({ project: other, name: 'far', tasks: [{ name: 'y' }] });
    const { id } = await apply({
      project,
      name: 'down',
      tasks: [{ name: 'a', depends: ['up/trigger/t', 'up/task/x@1d', `${other}/far/task/y`] }],
    });
    expect(await edgesOf(id)).toEqual(['t trigger a 0', 'x success a 86400000', 'y success a 0']);
  });

  it('all references that lead nowhere are reported with their path, and nothing is written', async () => {
    const project = await newProject();
    const { id } = await apply({ project, name: 'up', tasks: [{ name: 'x' }, { name: 'gone' }] });
    await apply({ project, name: 'up', tasks: [{ name: 'x' }] });
    const before = await rowCounts();
    const tasks = [
      { name: 'a', depends: ['up/task/x', 'up/task/nothing', 'up/trigger/x'] },
      { name: 'b', depends_failure: ['up/task/gone'], depends_done: ['nobody/up/task/x'] },
    ];
    await expect(apply({ project, name: 'down', tasks })).rejects.toMatchObject({
      code: 'bad_reference',
      faults: [
        { path: 'tasks[0].depends[1]' },
        { path: 'tasks[0].depends[2]' },
        { path: 'tasks[1].depends_failure[0]' },
        { path: 'tasks[1].depends_done[0]' },
      ],
    });
    expect(await rowCounts()).toEqual(before);
    expect(await tasksOf(id)).toHaveLength(2);
  });

  it('a reference to a removed part is cut, with a warning that names the dependent task', async () => {
    const project = await newProject();
    await apply({ project, name: 'up', triggers: [trigger('t')], tasks: [{ name: 'x' }] });
    const down = await apply({ project, name: 'down', tasks: [{ name: 'a', depends: ['up/task/x', 'up/trigger/t'] }] });
    const { warnings } = await apply({ project, name: 'up', tasks: [{ name: 'z' }] });
    expect(warnings.map((warning) => warning.message)).toEqual([
      `${project}/down/task/a depended on t, which is no longer here`,
      `${project}/down/task/a depended on x, which is no longer here`,
    ]);
    expect(await edgesOf(down.id)).toEqual([]);
  });

  it('references from other jobs survive a change that keeps the parts they name', async () => {
    const project = await newProject();
    await apply({ project, name: 'up', tasks: [{ name: 'x' }] });
    const down = await apply({ project, name: 'down', tasks: [{ name: 'a', depends: ['up/task/x'] }] });
    await apply({ project, name: 'up', tasks: [{ name: 'x', timeout: '1h' }] });
    expect(await edgesOf(down.id)).toEqual(['x success a 0']);
  });
});

describe('paused', () => {
  const pausedOf = async (id: string): Promise<unknown[]> => {
    const job = await db.one<{ paused: boolean }>(sql`select paused from job where id = ${id}`);
    return [job.paused, ...(await tasksOf(id)).map((task) => task.paused)];
  };

  it('the document sets whether the job is paused; a document without the field leaves it as it is', async () => {
    const project = await newProject();
    const { id } = await apply({ project, paused: true });
    expect(await pausedOf(id)).toEqual([true, true]);
    await apply({ project, tasks: [{ name: 'a' }, { name: 'b' }] });
    expect(await pausedOf(id)).toEqual([true, true, true]);
    await apply({ project, paused: false, tasks: [{ name: 'a' }] });
    expect(await pausedOf(id)).toEqual([false, false, true]);
    expect(await eventsOf(id)).toEqual(['job.created', 'job.changed', 'job.changed', 'job.unpaused']);
  });

  it('an unchanged document overrides a manual pause, and appends an event', async () => {
    const project = await newProject();
    const { id } = await apply({ project, paused: false });
    await db.exec(sql`update job set paused = true where id = ${id}`);
    await db.exec(sql`update task set paused = true where job_id = ${id}`);
    expect(await apply({ project, paused: false })).toMatchObject({ outcome: 'unchanged', version: 1 });
    expect(await pausedOf(id)).toEqual([false, false]);
    expect(await eventsOf(id)).toEqual(['job.created', 'job.unpaused']);
  });
});

describe('definitions for workers', () => {
  it('a worker reads the definition of the version that a run was made from', async () => {
    const project = await newProject();
    const process = (command: string[]) => [
      { name: 'a', timeout: '1m', process: { command, env: { X: 'y', S: { stash: 'secret' } } } },
    ];
    const { id } = await apply({ project, tasks: process(['one']) });
    await apply({ project, tasks: process(['two']) });
    const [task] = await db.rows<{ id: string }>(sql`select id from task where job_id = ${id}`);
    const key = (version: number) => ({ tenant: 'default', task: task?.id ?? '', version });
    const found = await readDefinitions(
      db,
      { tenant: 'default' },
      [key(1), key(2), key(3), { ...key(1), task: newId() }],
      new DocumentCache(),
    );
    expect(
      found
        .toSorted((a, b) => a.version - b.version)
        .map((d) => [d.version, d.runtime, d.timeout_ms, d.job.id, d.project.name]),
    ).toEqual([
      [
        1,
        { kind: 'process', command: ['one'], env: { X: 'y', S: { stash: 'secret' } }, cwd: null },
        60_000,
        id,
        project,
      ],
      [
        2,
        { kind: 'process', command: ['two'], env: { X: 'y', S: { stash: 'secret' } }, cwd: null },
        60_000,
        id,
        project,
      ],
    ]);
  });
});
