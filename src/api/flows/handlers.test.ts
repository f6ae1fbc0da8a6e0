import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { anyText, refusal, textWith } from '../../../test/harness/expected.ts';
import { makeProject } from '../../../test/harness/pipeline.ts';
import { keyOf, makeTenantApi, type TenantApi } from '../../../test/harness/tenant-api.ts';
import { sql } from '../../kernel/sql.ts';

let api: TenantApi;
beforeAll(async () => {
  api = await makeTenantApi();
});
afterAll(() => api.close());

const apply = (document: object, query: { dry_run?: 'true' } = {}) =>
  api.call('POST /api/flows', { query, body: JSON.stringify(document) });
const approval = (title: string) => ({
  flow: 'approval',
  description: 'asks a manager',
  steps: [{ task: 'note' }, { task: 'ask', human: { assignee: 'meg', title }, timeout: '1d' }, { call: 'paying' }],
});

describe('applying a flow', () => {
  it('makes a version, and none if the document is the same', async () => {
    const calls = { path: 'steps[2]', message: 'calls the flow paying, which is not applied yet' };
    expect(await apply(approval('one'))).toEqual({ name: 'approval', version: 1, changed: true, warnings: [calls] });
    expect(await apply(approval('one'))).toMatchObject({ version: 1, changed: false });
    expect(await apply(approval('two'), { dry_run: 'true' })).toMatchObject({ version: 2, changed: true });
    expect(await apply(approval('two'))).toMatchObject({ version: 2, changed: true });
    const rows = await api.db.rows(sql`select version from flow_version order by version`);
    expect(rows).toEqual([{ version: 1 }, { version: 2 }]);
  });

  it('answers 201 for a new version, and 200 for a dry run or an equal document', async () => {
    const send = async (path: string): Promise<number> => {
      const text = 'flow: statuses\nsteps: [{wait: 1h}]';
      const headers = { 'content-type': 'application/yaml' };
      return (await api.fetch('POST', path, { caller: keyOf('operator'), body: text, headers })).status;
    };
    expect(await send('/api/flows?dry_run=true')).toBe(200);
    expect([await send('/api/flows'), await send('/api/flows')]).toEqual([201, 200]);
  });

  it('lists every fault with its path, and writes nothing', async () => {
    const document = { flow: 'bad', steps: [{ task: 5 }, { wait: 'soon' }, { if: 'f.a +', then: [] }] };
    const answer = await api.fetch('POST', '/api/flows', { caller: keyOf('operator'), body: JSON.stringify(document) });
    expect(answer.status).toBe(400);
    const { code, faults } = (await answer.json()) as { code: string; faults: { path: string }[] };
    expect(code).toBe('bad_document');
    expect(faults.map(({ path }) => path)).toEqual(['steps[0].task', 'steps[1].wait', 'steps[2].if']);
    expect(await api.db.rows(sql`select from flow where name = 'bad'`)).toEqual([]);
  });

  it('checks a document without an error for its faults', async () => {
    const check = (document: object) => api.call('POST /api/flows/check', { body: JSON.stringify(document) });
    expect(await check({ flow: 'x', steps: [{ wait: 'soon' }] })).toMatchObject({
      faults: [{ path: 'steps[0].wait' }],
      applied: null,
    });
    expect(await check({ flow: 'x', steps: [{ wait: '1h' }] })).toEqual({
      faults: [],
      applied: { name: 'x', version: 1, changed: true, warnings: [] },
    });
  });

  it('needs the project that it names, and warns of a pool that does not exist', async () => {
    const steps = [{ task: 'go', docker: { image: 'alpine' }, pool: 'lorries' }];
    await expect(apply({ flow: 'shipping', project: 'nowhere', steps })).rejects.toEqual(refusal(400));
    await makeProject(api.db, 'somewhere');
    expect(await apply({ flow: 'shipping', project: 'somewhere', steps })).toMatchObject({
      warnings: [{ path: 'steps[0].pool', message: textWith('the pool lorries is new') }],
    });
  });

  it('refuses tasks that the tenant may not run: processes, functions of workers, and those of conductors', async () => {
    const other = await makeTenantApi({ name: 'other', localTasks: 'default' });
    const steps = [
      { task: 'a', process: { command: ['true'] } },
      { task: 'b', function: { name: 'f' } },
      { task: 'c' },
      { task: 'd', docker: { image: 'alpine' } },
      { task: 'e', http: { method: 'GET', url: 'https://shop.example' } },
      { task: 'f', human: { assignee: 'meg', title: 'ok?' } },
    ];
    const body = JSON.stringify({ flow: 'local', steps });
    const { faults } = await other.call('POST /api/flows/check', { body });
    await expect(other.call('POST /api/flows', { body })).rejects.toEqual(refusal(400));
    await other.close();
    expect(faults.map(({ path }) => path)).toEqual(['steps[0].process', 'steps[1].function', 'steps[2]']);
    expect(faults[2]?.message).toBe('only the tenant default may run function tasks (MILLRACE_LOCAL_TASKS=default)');
  });
});

describe('flows', () => {
  it('are listed by name, a page at a time, with counts of their executions', async () => {
    await apply({ flow: 'zz1', steps: [{ wait: '1h' }] });
    await apply({ flow: 'zz2', description: 'd'.repeat(2_000), steps: [{ wait: '1h' }] });
    const { id } = await api.db.one<{ id: string }>(sql`select id from flow where name = 'zz1'`);
    const insert = (status: number, calls: number) =>
      api.db.exec(sql`
      insert into execution (id, rev, status, calls, flow_id, version, format, created_at, updated_at)
      values (new_id(), 1, ${status}, ${calls}, ${id}, 1, 1, now(), now())`);
    for (const [status, calls] of [
      [0, 0],
      [0, 1],
      [1, 0],
      [2, 0],
      [3, 0],
      [5, 0],
    ] as const)
      await insert(status, calls);
    const first = await api.call('GET /api/flows', { query: { limit: 1, cursor: 'zz0' } });
    expect(first).toEqual({
      items: [
        {
          name: 'zz1',
          version: 1,
          description: null,
          project: null,
          updated_at: anyText,
          updated_by: 'key:operator',
          counts: { running: 1, waiting: 1, paused: 1, incident: 1 },
        },
      ],
      next: 'zz1',
    });
    const { items, next } = await api.call('GET /api/flows', { query: { cursor: first.next ?? '' } });
    expect([items.map(({ name, description }) => [name, description?.length]), next]).toEqual([[['zz2', 1_000]], null]);
  });

  it('are read with their document, tree, versions and hosted functions', async () => {
    await apply(approval('one'));
    await apply(approval('last'));
    const flow = await api.call('GET /api/flows/{name}', { params: { name: 'approval' } });
    expect(flow).toMatchObject({ name: 'approval', functions: ['note'], project: null, description: 'asks a manager' });
    expect(flow.document).toEqual(approval('last'));
    expect(flow.versions[0]).toEqual({ version: flow.version, at: anyText, actor: 'key:operator' });
    expect(flow.tree.children.map(({ verb, title, state }) => [verb, title, state])).toEqual([
      ['task', 'note', 'idle'],
      ['task', 'ask', 'idle'],
      ['call', 'paying', 'idle'],
    ]);
    const old = await api.call('GET /api/flows/{name}', { params: { name: 'approval' }, query: { version: 1 } });
    expect([old.version, old.document]).toEqual([1, approval('one')]);
    const show = (version: number) =>
      api.call('GET /api/flows/{name}', { params: { name: 'approval' }, query: { version } });
    await expect(show(99)).rejects.toEqual(refusal(404));
  });

  it('are deleted, and another one may have the name', async () => {
    await apply({ flow: 'brief', steps: [{ wait: '1h' }] });
    await apply({ flow: 'brief', steps: [{ wait: '2h' }] });
    await api.call('DELETE /api/flows/{name}', { params: { name: 'brief' } });
    await expect(api.call('GET /api/flows/{name}', { params: { name: 'brief' } })).rejects.toEqual(refusal(404));
    await expect(api.call('DELETE /api/flows/{name}', { params: { name: 'brief' } })).rejects.toEqual(refusal(404));
    expect(await apply({ flow: 'brief', steps: [{ wait: '2h' }] })).toMatchObject({ version: 1, changed: true });
    const { items } = await api.call('GET /api/audit', { query: { limit: 3 } });
    expect(items.map(({ type, actor }) => [type, actor])).toEqual([
      ['flow.applied', 'key:operator'],
      ['flow.deleted', 'key:operator'],
      ['flow.applied', 'key:operator'],
    ]);
  });

  it('of many concurrent applications each gets its own version', async () => {
    const all = await Promise.all(
      Array.from({ length: 8 }, (_, i) => apply({ flow: 'busy', steps: [{ wait: `${i + 1}h` }] })),
    );
    expect(all.map(({ version }) => version).toSorted((a, b) => a - b)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
  });
});
