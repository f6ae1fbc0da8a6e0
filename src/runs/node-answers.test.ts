/** Answers to executions: every end of a node's run stores one, in the same commit, whoever ends the run. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { inboxOf, makeExecution, type NodePlan, queueNodes, type Stored } from '../../test/harness/node-runs.ts';
import { makeTenantApi, type TenantApi } from '../../test/harness/tenant-api.ts';
import type { EngineContext } from '../contract/context.ts';
import type { ClaimedRun, Report } from '../contract/wire.ts';
import { engine } from '../engine/engine.ts';
import { newId } from '../kernel/id.ts';
import { sql } from '../kernel/sql.ts';

let api: TenantApi;
const hinted: (string | null)[][] = [];
let ctx: EngineContext;
beforeAll(async () => {
  api = await makeTenantApi();
  const conductors = {
    deliver: () => Promise.reject(new Error('nothing is delivered here')),
    hint: (_: string, owners: readonly (string | null)[]) => void hinted.push([...owners]),
  };
  // handlers and engine share this context
  ctx = Object.assign(api.ctx, { conductors });
});
afterAll(() => api.close());
afterEach(async () => {
  hinted.splice(0);
  await api.db.exec(sql`delete from live`);
});

const worker = newId();
const now = (): Date => new Date(api.ctx.time.now());
const execute = (owner: string | null = null, status = 0): Promise<string> =>
  makeExecution(api.db, now(), { owner, status });
const lanes = ['node/process:default', 'node/http:default'];

async function start(...plans: NodePlan[]): Promise<ClaimedRun[]> {
  await queueNodes(api.db, now(), plans);
  return (await engine.runs.claim(ctx, [{ worker, incarnation: 1, free: 10, lanes }]))[0] ?? [];
}

async function startOne(plan: NodePlan): Promise<ClaimedRun> {
  const [run] = await start(plan);
  if (run === undefined) throw new Error('nothing was claimed');
  return run;
}

const reportOf = ({ tenant, run, lease }: ClaimedRun, more: Partial<Report> = {}): Report => {
  return { tenant, run, lease, state: 'success', reason: null, exit_code: 0, started_at: null, ...more };
};
const report = (...reports: Report[]) => engine.runs.report(ctx, reports);
const outcomes = (stored: readonly Stored[]) => stored.map(({ body }) => body.body.outcome);

it('the answer names node and attempt, carries the result, and is stored once', async () => {
  const execution = await execute();
  const run = await startOne({ execution, nid: '0_3-7', attempt: 2 });
  await report(reportOf(run, { result: '{"id":7}' }));
  await report(reportOf(run, { state: 'failure' }));
  const [answer, ...more] = await inboxOf(api.db, execution);
  expect(more).toEqual([]);
  expect(answer).toMatchObject({
    id: 'answer/0_3-7/2',
    body: {
      point: 'answer',
      actor: null,
      body: { point: 'answer', nid: '0_3-7', attempt: 2, outcome: { kind: 'done', result: { id: 7 } } },
    },
  });
  expect(answer?.body['bornMs']).toBeTypeOf('number');
});

it('a success without a result has the result null', async () => {
  const execution = await execute();
  await report(reportOf(await startOne({ execution })));
  expect(outcomes(await inboxOf(api.db, execution))).toEqual([{ kind: 'done', result: null }]);
});

describe.each(['failure', 'timeout', 'error'] as const)('a run that ends in %s', (state) => {
  it('answers with the state as code, the reason, the run and its exit code', async () => {
    const execution = await execute();
    const run = await startOne({ execution });
    await report(reportOf(run, { state, reason: 'it broke', exit_code: 3 }));
    expect(outcomes(await inboxOf(api.db, execution))).toEqual([
      { kind: 'failed', code: state, message: 'it broke', data: { run: run.run, exit_code: 3 } },
    ]);
  });
});

it('one batch of results answers several nodes of one execution, and hints each owner once', async () => {
  const [owner, other] = [newId(), newId()];
  const [one, two, free] = [await execute(owner), await execute(other), await execute()];
  const runs = await start(
    { execution: one, nid: '0_1' },
    { execution: one, nid: '0_2' },
    { execution: two },
    { execution: free },
  );
  expect(await report(...runs.map((run) => reportOf(run)))).toMatchObject({ applied: 4 });
  expect((await inboxOf(api.db, one)).map(({ id }) => id)).toEqual(['answer/0_1/1', 'answer/0_2/1']);
  expect(hinted).toHaveLength(1);
  expect(new Set(hinted[0])).toEqual(new Set([owner, other, null]));
  expect(hinted[0]).toHaveLength(3);
});

it('an execution that does not exist, or has ended, is told nothing; its run is recorded all the same', async () => {
  const [gone, over] = [newId(), await execute(null, 3)];
  const runs = await start({ execution: gone }, { execution: over });
  expect(await report(...runs.map((run) => reportOf(run)))).toMatchObject({ applied: 2 });
  expect([...(await inboxOf(api.db, gone)), ...(await inboxOf(api.db, over))]).toEqual([]);
  expect(hinted).toEqual([]);
  const recorded = await api.db.rows(sql`select id from run where id = any (${runs.map(({ run }) => run)}::uuid[])`);
  expect(recorded).toHaveLength(2);
});

it('a paused execution is told, and an incident as well', async () => {
  const [paused, incident] = [await execute(null, 1), await execute(null, 2)];
  await report(...(await start({ execution: paused }, { execution: incident })).map((run) => reportOf(run)));
  expect(await inboxOf(api.db, paused)).toHaveLength(1);
  expect(await inboxOf(api.db, incident)).toHaveLength(1);
});

it('an answer that came before is kept', async () => {
  const execution = await execute();
  const run = await startOne({ execution, nid: '0_9' });
  await api.db.exec(sql`
    insert into inbox (id, execution_id, at, body)
    values ('answer/0_9/1', ${execution}, ${now()}, '{"body":{"outcome":{"kind":"first"}}}')`);
  await report(reportOf(run, { state: 'error' }));
  expect(outcomes(await inboxOf(api.db, execution))).toEqual([{ kind: 'first' }]);
  expect(hinted).toEqual([]);
});

it('a request that was taken answers nothing if its node waits for an answer by link, and one that failed does', async () => {
  const runtime = {
    kind: 'http',
    method: 'POST',
    url: 'https://a.example/',
    answer_url: 'https://m.example/answers/x',
  };
  const execution = await execute();
  const runs = await start({ execution, nid: 'a', runtime }, { execution, nid: 'b', runtime });
  const [taken, failed] = ['a', 'b'].map((id) => runs.find(({ node }) => node?.id === id));
  if (taken === undefined || failed === undefined) throw new Error('not both were claimed');
  await report(reportOf(taken), reportOf(failed, { state: 'failure', reason: 'the answer was 500' }));
  expect((await inboxOf(api.db, execution)).map(({ id }) => id)).toEqual(['answer/b/1']);
});

describe('without a report', () => {
  it('cancelling a queued run answers `cancelled` at once, and wakes the owner', async () => {
    const owner = newId();
    const execution = await execute(owner);
    const [run = ''] = await queueNodes(api.db, now(), [{ execution }]);
    await api.call('POST /api/runs/{id}/cancel', { params: { id: run } });
    expect(outcomes(await inboxOf(api.db, execution))).toEqual([{ kind: 'cancelled' }]);
    expect(hinted).toEqual([[owner]]);
  });

  it('cancelling a running run answers when its worker has ended it', async () => {
    const execution = await execute();
    const run = await startOne({ execution });
    await api.call('POST /api/runs/{id}/cancel', { params: { id: run.run } });
    expect(await inboxOf(api.db, execution)).toEqual([]);
    await report(reportOf(run, { state: 'cancelled', reason: 'it was cancelled' }));
    expect(outcomes(await inboxOf(api.db, execution))).toEqual([{ kind: 'cancelled' }]);
  });

  it('a run that succeeded before it could be killed answers with its result', async () => {
    const execution = await execute();
    const run = await startOne({ execution });
    await api.call('POST /api/runs/{id}/cancel', { params: { id: run.run } });
    await report(reportOf(run, { result: '1' }));
    expect(outcomes(await inboxOf(api.db, execution))).toEqual([{ kind: 'done', result: 1 }]);
  });

  it('a cancelled run that its worker returns answers `cancelled`', async () => {
    const owner = newId();
    const execution = await execute(owner);
    const run = await startOne({ execution });
    await api.call('POST /api/runs/{id}/cancel', { params: { id: run.run } });
    await report(reportOf(run, { state: 'returned' }));
    expect(outcomes(await inboxOf(api.db, execution))).toEqual([{ kind: 'cancelled' }]);
    expect(hinted).toEqual([[owner]]);
  });

  it('a run that its worker returns comes back, and answers nothing yet', async () => {
    const execution = await execute();
    await report(reportOf(await startOne({ execution }), { state: 'returned' }));
    expect(await inboxOf(api.db, execution)).toEqual([]);
    expect(await start()).toHaveLength(1);
  });

  it('a run that is reported as lost three times answers `error`', async () => {
    const owner = newId();
    const execution = await execute(owner);
    let run = await startOne({ execution });
    for (const _ of ['first', 'second']) {
      await report(reportOf(run, { state: 'lost', reason: 'the daemon restarted' }));
      expect(await inboxOf(api.db, execution)).toEqual([]);
      [run = run] = await start();
    }
    await report(reportOf(run, { state: 'lost', reason: 'the daemon restarted' }));
    expect(outcomes(await inboxOf(api.db, execution))).toMatchObject([
      { kind: 'failed', code: 'error', message: 'it was lost three times: the daemon restarted' },
    ]);
    expect(hinted).toEqual([[owner]]);
  });

  it('a run whose worker was lost three times answers `error`, and its owner is returned', async () => {
    const owner = newId();
    const execution = await execute(owner);
    await queueNodes(api.db, now(), [{ execution }]);
    const takeBack = async (): Promise<unknown> => {
      await start();
      const later = new Date(api.ctx.time.now() + 60_000);
      return api.db.one(sql`select failed, owners from take_back_runs(interval '10 seconds', ${later}::timestamptz)`);
    };
    expect(await takeBack()).toEqual({ failed: 0, owners: null });
    expect(await takeBack()).toEqual({ failed: 0, owners: null });
    expect(await takeBack()).toEqual({ failed: 1, owners: [owner] });
    expect(outcomes(await inboxOf(api.db, execution))).toMatchObject([
      { kind: 'failed', code: 'error', message: 'its worker was lost three times' },
    ]);
  });
});

it('no end of a run waits for a lock on its execution', async () => {
  const execution = await execute();
  const run = await startOne({ execution, nid: 'r' });
  const [queued = ''] = await queueNodes(api.db, now(), [{ execution, nid: 'q' }]);
  await api.db.transaction(async (tx) => {
    await tx.exec(sql`select from execution where id = ${execution} for update`);
    await report(reportOf(run));
    await api.call('POST /api/runs/{id}/cancel', { params: { id: queued } });
  });
  expect((await inboxOf(api.db, execution)).map(({ id }) => id)).toEqual(['answer/q/1', 'answer/r/1']);
});
