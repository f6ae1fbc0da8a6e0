/** Runs of nodes: they have neither a task nor an instant, and pass every stage like other runs. */
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { activate, makeJob } from '../../test/harness/runs.ts';
import { makeTenantApi, taskOf, type TenantApi } from '../../test/harness/tenant-api.ts';
import { type NodePlan, queueNodes } from '../../test/harness/node-runs.ts';
import type { Poll } from '../contract/engine.ts';
import type { ClaimedRun, Report } from '../contract/wire.ts';
import { engine } from '../engine/engine.ts';
import { newId } from '../kernel/id.ts';
import { sql } from '../kernel/sql.ts';
import { makeSecrets } from '../gateway/access/secrets.ts';
import { stashValuesFor } from '../api/stash/handlers.ts';

let api: TenantApi;
beforeAll(async () => {
  api = await makeTenantApi();
});
afterAll(() => api.close());
afterEach(() => api.db.exec(sql`delete from live`));

const execution = newId();
const worker = newId();
const lanes = ['node/process:default', 'process:default'];
const poll = (free = 10): Poll => ({ worker, incarnation: 1, free, lanes });
const now = (): Date => new Date(api.ctx.time.now());
const queue = (...plans: NodePlan[]): Promise<string[]> => queueNodes(api.db, now(), plans);
const claim = async (free?: number): Promise<ClaimedRun[]> => (await engine.runs.claim(api.ctx, [poll(free)]))[0] ?? [];
const end = ({ tenant, run, lease }: ClaimedRun, more: Partial<Report> = {}): Report => {
  return { tenant, run, lease, state: 'success', reason: null, exit_code: 0, started_at: null, ...more };
};
const eventsOf = async (run: string): Promise<{ type: string; actor: string | null; body: unknown }[]> => {
  const rows = await api.db.rows<{ type: string; actor: string | null; body: string }>(sql`
    select type, actor, body from event where subject = ${run} order by seq`);
  return rows.map((row) => ({ ...row, body: JSON.parse(row.body) as unknown }));
};

it('a run of a node is claimed with its work, beside a run of a task', async () => {
  const job = await makeJob(api, { tasks: [{ name: 'a', process: { command: ['true'] } }] });
  await activate(api, job.tasks['a'], '2026-01-01T00:00:00.000Z');
  const [run] = await queue({ execution, nid: '0_7' });
  const claimed = await claim();
  expect(claimed).toHaveLength(2);
  const node = claimed.find((each) => each.run === run)?.node;
  expect(node).toMatchObject({ execution, id: '0_7', name: 'ship', project: null, runtime: { kind: 'process' } });
});

it('a claim carries the params of a node, and a credential for its run', async () => {
  const [run] = await queue({ params: { order: { id: 7 } } });
  const [held] = await claim();
  expect(held).toMatchObject({ run, params: { order: { id: 7 } }, node: { timeout_ms: 60_000 } });
  expect(
    makeSecrets(['a master key of the tests'], () => api.ctx.time.now()).verifyRun(held?.credential ?? ''),
  ).toEqual({
    kind: 'task',
    tenantId: api.ctx.tenant.id,
    run,
    lease: 1,
  });
});

it('an attempt of a node is queued once', async () => {
  const plan = { execution: newId(), nid: '0_1' };
  expect(await queue(plan, plan)).toHaveLength(1);
  expect(await queue(plan)).toHaveLength(0);
  expect(await queue({ ...plan, attempt: 2 })).toHaveLength(1);
});

it('the report of a node’s run is applied, with an event that names execution and node, and stores its result', async () => {
  const [run = ''] = await queue({ execution, nid: '0_2' });
  const [held] = await claim();
  if (held === undefined) throw new Error('nothing was claimed');
  expect(await engine.runs.report(api.ctx, [end(held, { result: '{"id":7}' })])).toMatchObject({ applied: 1 });
  const about = { job: null, task: null, instant: null, execution, node: '0_2' };
  expect(await eventsOf(run)).toMatchObject([
    { type: 'run.created', actor: null, body: about },
    { type: 'run.finished', actor: 'worker', body: { ...about, state: 'success', retry: false } },
  ]);
  expect(await api.db.one(sql`select state, result from run where id = ${run}`)).toEqual({
    state: 'success',
    result: { id: 7 },
  });
});

it('a result that is not JSON becomes the reason of the run, and does not affect other reports', async () => {
  await queue({ nid: 'a' }, { nid: 'b' });
  const held = await claim();
  const reports = held.map((run, i) => end(run, { result: i === 0 ? '{' : '[1]' }));
  expect(await engine.runs.report(api.ctx, reports)).toMatchObject({ applied: 2 });
  const rows = await api.db.rows<{ reason: string | null; result: unknown }>(sql`
    select reason, result from run where id = any (${held.map(({ run }) => run)}::uuid[]) order by result is not null`);
  expect(rows[0]?.reason).toMatch(/^its result is not JSON/);
  expect(rows[1]).toEqual({ reason: null, result: [1] });
});

it('cancelling a queued and a running node writes events that are JSON', async () => {
  const [queued = '', running = ''] = await queue({ execution, nid: 'q', priority: 'low' }, { execution, nid: 'r' });
  await claim(1);
  for (const id of [queued, running]) await api.call('POST /api/runs/{id}/cancel', { params: { id } });
  expect((await eventsOf(queued)).at(-1)).toMatchObject({ type: 'run.finished', body: { execution, node: 'q' } });
  expect((await eventsOf(running)).at(-1)).toMatchObject({ type: 'run.cancel_wished', body: { execution, node: 'r' } });
});

it('a pool limits runs of nodes, and admits the next when one ends', async () => {
  const pool = `pool ${newId()}`;
  await queue({ nid: 'a', pool }, { nid: 'b', pool });
  const [first, ...more] = await claim();
  expect(more).toEqual([]);
  if (first === undefined) throw new Error('nothing was claimed');
  await engine.runs.report(api.ctx, [end(first)]);
  expect(await claim()).toHaveLength(1);
});

it('the explanation of a node that waits for a pool names the node that holds the place', async () => {
  const pool = `pool ${newId()}`;
  const [, waiting = ''] = await queue({ execution, nid: 'x', pool }, { execution, nid: 'y', pool });
  await claim();
  const { reasons } = await api.call('GET /api/explain/run/{id}', { params: { id: waiting } });
  expect(reasons[0]).toMatchObject({ code: 'pool_full' });
  expect(reasons[0]?.message).toContain(`by ship of the execution ${execution}`);
});

it('retention deletes runs of nodes by age, together with their node data', async () => {
  await queue({ nid: 'old' });
  const [held] = await claim();
  if (held === undefined) throw new Error('nothing was claimed');
  await engine.runs.report(api.ctx, [end(held)]);
  const left = (): Promise<{ runs: number; nodes: number }> =>
    api.db.one(sql`
      select (select count(*)::integer from run where id = ${held.run}) as runs,
             (select count(*)::integer from node_run where run_id = ${held.run}) as nodes`);
  const prune = (ageMs: number | null): Promise<number> =>
    engine.prune({ ...api.ctx, settings: { ...api.ctx.settings, retention: { ageMs, runs: null, events: null } } });
  await prune(60_000);
  expect(await left()).toEqual({ runs: 1, nodes: 1 });
  await api.db.exec(sql`update run set finished_at = finished_at - interval '1 hour' where id = ${held.run}`);
  await prune(null);
  expect(await left()).toEqual({ runs: 1, nodes: 1 });
  await prune(60_000);
  expect(await left()).toEqual({ runs: 0, nodes: 0 });
});

it('the audit names the node of a run that a person cancels, and lists no event of the conductor', async () => {
  const [run = ''] = await queue({ nid: 'audited' });
  await api.call('POST /api/runs/{id}/cancel', { params: { id: run } });
  const { items } = await api.call('GET /api/audit', { query: { limit: 100 } });
  const about = items.filter(({ subject }) => subject === run);
  expect(about.map(({ type, name }) => [type, name])).toEqual([['run.finished', 'ship']]);
});

it('a run of a node that is lost three times ends in error', async () => {
  const [run] = await queue({ nid: 'lost' });
  for (let losses = 0; losses < 3; losses++) {
    await claim();
    const later = new Date(api.ctx.time.now() + 60_000);
    await api.db.exec(sql`select take_back_runs(interval '10 seconds', ${later}::timestamptz)`);
  }
  expect(await api.db.rows(sql`select state, reason from run where id = ${run}`)).toEqual([
    { state: 'error', reason: 'its worker was lost three times' },
  ]);
});

it('the task of a node reads stash and configuration of its project, with its credential and through its worker', async () => {
  const config = { region: 'eu' };
  const { id: project } = await api.call('PUT /api/projects', { body: { name: `p ${newId()}`, config } });
  await api.call('PUT /api/projects/{id}/stash/{key}', { params: { id: project, key: 'k' }, body: Buffer.from('v') });
  await queue({ nid: 's', project, env: { K: { stash: 'k' } } });
  const [held] = await claim();
  if (held === undefined) throw new Error('nothing was claimed');
  const { tenant, run, lease } = held;
  expect(await stashValuesFor(api.ctx, { tenant, run, lease, worker }, ['k'])).toEqual({ k: 'dg==' });
  const answer = await api.fetch('GET', `/int-api/projects/${project}/stash/k`, { caller: taskOf(run, lease) });
  expect([answer.status, await answer.text()]).toEqual([200, 'v']);
  const path = `/int-api/projects/${project}/config`;
  expect(await (await api.fetch('GET', path, { caller: taskOf(run, lease) })).json()).toEqual(config);
  const { id: other } = await api.call('PUT /api/projects', { body: { name: `p ${newId()}` } });
  const foreign = `/int-api/projects/${other}/config`;
  expect((await api.fetch('GET', foreign, { caller: taskOf(run, lease) })).status).toBe(403);
});

const accept = (run: string, lease: number, by = worker) => ({
  worker: by,
  incarnation: 1,
  lanes,
  runs: [{ run, lease }],
});

it('an offer is accepted once, and not after a claim or a cancellation, or under another lease', async () => {
  const [a = '', b = '', c = '', d = ''] = await queue({ nid: 'a' }, { nid: 'b' }, { nid: 'c' }, { nid: 'd' });
  const offers = await engine.runs.offers(api.ctx, 'node/process:default', 10, new Set([d]));
  expect(offers.map(({ run, lease, task }) => [run, lease, task])).toEqual([a, b, c].map((run) => [run, 0, null]));
  const twice = await engine.runs.accept(api.ctx, [accept(a, 0), accept(a, 0, newId()), accept(b, 1)]);
  expect(twice.map((runs) => runs.map(({ run, lease }) => [run, lease]))).toEqual([[[a, 1]], [], []]);
  await api.call('POST /api/runs/{id}/cancel', { params: { id: b } });
  await claim(1);
  expect(await engine.runs.accept(api.ctx, [accept(a, 0), accept(b, 0), accept(c, 0), accept(newId(), 0)])).toEqual([
    [],
    [],
    [],
    [],
  ]);
});

it('a run of a paused job, or of a lane that the worker does not serve, is not accepted', async () => {
  const job = await makeJob(api, { tasks: [{ name: 'a', process: { command: ['true'] } }] });
  const run = await activate(api, job.tasks['a'], '2026-02-01T00:00:00.000Z');
  expect(await engine.runs.accept(api.ctx, [{ ...accept(run, 0), lanes: ['none:default'] }])).toEqual([[]]);
  await api.db.exec(sql`update task set paused = true where id = ${job.tasks['a']}`);
  expect(await engine.runs.accept(api.ctx, [accept(run, 0)])).toEqual([[]]);
  expect(await api.db.one(sql`select parked, lease from live where id = ${run}`)).toEqual({ parked: true, lease: 0 });
});
