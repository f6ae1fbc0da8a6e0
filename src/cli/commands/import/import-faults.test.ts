import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Broken, Importing } from '../../../../test/harness/cli/importing.ts';
import { fillInstallation } from '../../../../test/harness/waterwheel-database.ts';
import { Sql, sql } from '../../../kernel/sql.ts';

let on: Importing;
beforeEach(async () => {
  on = await Importing.start();
});
afterEach(() => on.stop());

describe('import that breaks', () => {
  /** Two jobs that refer to each other, with a token, and stash values of each kind. */
  async function fillRing(): Promise<void> {
    const project = await on.source.project('ring');
    const [a] = [
      await on.source.job({
        project: 'ring',
        name: 'a',
        triggers: [{ name: 't', start: '2026-01-01T00:00:00Z', period: '1d' }],
        tasks: [{ name: 'there', depends: ['trigger/t', 'b/task/back'] }],
        fired: { t: ['2026-01-01T00:00:00Z', '2026-02-01T00:00:00Z'] },
      }),
      await on.source.job({ project: 'ring', name: 'b', tasks: [{ name: 'back', depends: ['a/task/there@1d'] }] }),
    ];
    await on.source.token(a, 'there', '2026-02-01T00:00:00Z', { count: 1 });
    await on.source.db.exec(sql`insert into global_stash (name, data) values ('g', 'x')`);
    await on.source.db.exec(sql`insert into project_stash (project_id, name, data) values (${project}, 'p', 'x')`);
    await on.source.db.exec(sql`
      insert into job_stash (job_id, trigger_datetime, name, data) values (${a}, '2026-02-01T00:00:00Z', 'j', 'x')`);
  }

  it('an import that breaks at any request, before or after its commit, is completed by the next one', async () => {
    await fillRing();
    await on.report();
    await on.report('--start');
    const wanted = await on.contents();
    // two jobs are checked; then the project, both jobs, the first one again, and the stash
    for (const k of [4, 6, 7]) {
      await on.useNewTenant();
      for (const when of ['before', 'after'] as const) {
        let requests = 0;
        on.onImport = (at) => {
          if (at === 'before') requests += 1;
          if (at === when && requests === k) throw new Broken();
        };
        const { code } = await on.run();
        // the second time around, the ring is closed already
        expect([k, when, code]).toEqual([k, when, requests < k ? 0 : 1]);
        on.onImport = undefined;
      }
      await on.report('--start');
      expect(await on.contents()).toEqual(wanted);
    }
  });
});

describe('source with faults', () => {
  it('all faults are reported together, and nothing is imported', async () => {
    await on.source.project('p');
    await on.source.project('a/b');
    await on.source.job({ project: 'p', name: 'fine', tasks: [{ name: 'a' }] });
    await on.source.job({ project: 'p', name: 'wrong', tasks: [{ name: 'a', threshold: 0 }, { name: 'x@y' }] });
    await on.source.job({ project: 'p', name: 'lost', tasks: [{ name: 'a', depends: ['other/task/b'] }] });
    await on.source.document('p', 'empty', null);
    await on.source.document('p', 'torn', '{"uuid":');
    await on.source.db.exec(sql`insert into global_stash (name, data) values (${'n'.repeat(201)}, 'x')`);
    const ran = await on.run();
    expect(ran.code).toBe(1);
    for (const line of [
      'project a/b: its name must have',
      'p/wrong: tasks[0].threshold:',
      'p/wrong: tasks[1].name:',
      'p/empty: has no document',
      'p/torn: has no document',
      'its name must have 1 to 200 characters',
    ]) {
      expect(ran.stderr).toContain(line);
    }
    expect(await on.contents()).toEqual([]);
  });

  it('a database with another schema, another database and no database are refused with the reason', async () => {
    await on.source.db.exec(sql`alter table trigger drop column earliest_trigger_datetime`);
    const older = await on.run();
    expect([older.code, older.stderr]).toEqual([
      1,
      expect.stringContaining('trigger.earliest_trigger_datetime: this column is missing'),
    ]);
    const none = await on.shell(['--db', 'postgres://127.0.0.1:1/x']);
    expect([none.code, none.stderr]).toEqual([3, expect.stringContaining('x at 127.0.0.1:1 cannot be opened')]);
    for (const db of ['', 'http://x', 'nonsense']) {
      const wrong = await on.shell([], { env: { WATERWHEEL_DB_URL: db } });
      expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining('WATERWHEEL_DB_URL')]);
    }
  });

  it('a user who may only read is enough, and nothing is written to the source', async () => {
    await fillInstallation(on.source);
    const reader = `reader_${new URL(on.source.url).pathname.slice(1)}`;
    await on.source.db.exec(new Sql([`create role ${reader} login`], []));
    try {
      await on.source.db.exec(new Sql([`grant pg_read_all_data to ${reader}`], []));
      const url = new URL(on.source.url);
      url.searchParams.set('options', `-c role=${reader}`);
      const ran = await on.shell(['--db', url.href]);
      expect([ran.code, ran.stderr]).toEqual([0, expect.stringContaining('2 projects, 9 jobs')]);
    } finally {
      await on.source.db.exec(new Sql([`drop role ${reader}`], []));
    }
  });
});

it('a job with 50,000 waiting tokens is imported, and one with more is refused by name', async () => {
  await on.source.project('p');
  const job = await on.source.job({ project: 'p', name: 'backlog', tasks: [{ name: 'a', threshold: 2 }] });
  const fill = (from: number, to: number): Promise<number> =>
    on.source.db.exec(sql`
      insert into token (task_id, trigger_datetime, count, state)
      select task.id, '2026-01-01T00:00:00Z'::timestamptz + n * interval '1 minute', 1, 'waiting'
        from task, generate_series(${from}::integer, ${to}::integer) as n
       where task.job_id = ${job}`);
  await fill(1, 50_000);
  expect((await on.report()).jobs).toMatchObject([{ outcome: 'created', tokens: 50_000 }]);
  await fill(50_001, 50_001);
  const ran = await on.run();
  expect([ran.code, ran.stderr]).toEqual([1, expect.stringContaining('p/backlog: has 50001 waiting tokens')]);
});

it('a tenant whose engine is older than imports is named, with the remedy', async () => {
  await on.source.project('p');
  await on.source.job({ project: 'p', name: 'job', tasks: [{ name: 'a' }] });
  on.onImport = () => {
    throw new Broken(404);
  };
  const ran = await on.run();
  expect([ran.code, ran.stderr]).toEqual([
    1,
    expect.stringContaining('tenant default cannot import; upgrade it first'),
  ]);
});
