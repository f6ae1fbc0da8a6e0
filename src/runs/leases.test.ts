/** Runs of lost workers return to the queue (I4), at most three times; a worker learns which runs it no longer holds. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { textWith } from '../../test/harness/expected.ts';
import {
  activate,
  cancel,
  claim,
  type ClaimedRow,
  finish,
  giveBack,
  historyOf,
  lose,
  makePipeline,
  type Pipeline,
  renew,
  runsOf,
  takeBack,
  type TestJob,
} from '../../test/harness/pipeline.ts';
import { newId } from '../kernel/id.ts';
import { sql } from '../kernel/sql.ts';

let line: Pipeline;
beforeAll(async () => {
  line = await makePipeline();
});
afterAll(() => line.close());

const day = (n: number): string => new Date(Date.UTC(2026, 0, n)).toISOString();

interface Held {
  readonly job: TestJob;
  readonly worker: string;
  readonly run: ClaimedRow;
}

/** A job with one run, which a worker of its own holds. */
async function held(incarnation = 1): Promise<Held> {
  const job = await line.job({ tasks: [{ name: 'only' }, { name: 'f', depends_failure: ['task/only'] }] });
  await activate(line, job.task('only'), day(1));
  const worker = newId();
  return { job, worker, run: await claimOne(job, worker, incarnation) };
}

async function claimOne(job: TestJob, worker: string, incarnation = 1): Promise<ClaimedRow> {
  const [run] = await claim(line, job.lane, { worker, incarnation });
  if (run === undefined) throw new Error('nothing to claim');
  return run;
}

const isHeld = async (run: ClaimedRow): Promise<boolean> =>
  (await line.db.one<{ held: boolean }>(sql`select worker_id is not null as held from live where id = ${run.id}`)).held;

/** Advances the time while the workers of other tests send heartbeats, so that only the runs of this test are lost. */
async function passing(ms: number, beat?: { worker: string; holds: string[]; incarnation?: number }): Promise<void> {
  line.time.advance(ms);
  await line.db.exec(
    sql`update lease set until = ${new Date(line.time.now() + 1_000)} where ${beat?.worker ?? null}::uuid is distinct from worker_id and worker_id <> all (${watched})`,
  );
  if (beat) await renew(line, beat);
}
const watched: string[] = [];

describe('runs of lost workers', () => {
  it('a run stays with its worker while heartbeats renew the lease and name it', async () => {
    const { worker, run } = await held();
    for (let i = 0; i < 10; i++) {
      await passing(20_000, { worker, holds: [run.id] });
      await takeBack(line);
      expect(await isHeld(run)).toBe(true);
    }
    await finish(line, [run]);
  });

  it('a run returns when its lease expires, and the old worker’s result has no effect (I3, I4)', async () => {
    const { job, worker, run } = await held();
    watched.push(worker);
    await passing(29_999);
    await takeBack(line);
    expect(await isHeld(run)).toBe(true);
    await passing(1);
    expect((await takeBack(line)).returned).toBe(1);
    const again = await claimOne(job, newId());
    expect(again).toMatchObject({ id: run.id, lease: 2, attempt: 1 });
    expect(await finish(line, [run])).toMatchObject({ applied: 0 });
    expect(await finish(line, [again])).toMatchObject({ applied: 1 });
  });

  it('a run returns if a heartbeat more than 10 s after its claim does not name it, not sooner (I4)', async () => {
    const { worker, run } = await held();
    await passing(10_000, { worker, holds: [] });
    await takeBack(line);
    expect(await isHeld(run)).toBe(true);
    await passing(1, { worker, holds: [] });
    expect(await isHeld(run)).toBe(false);
  });

  it('a run returns at once when a newer incarnation of its worker sends a heartbeat or claims (I4)', async () => {
    const beaten = await held(1);
    const answer = await renew(line, { worker: beaten.worker, incarnation: 2, holds: [] });
    expect(answer).toMatchObject({ returned: true, mine: null });
    expect(await isHeld(beaten.run)).toBe(false);
    const claimed = await held(1);
    await activate(line, claimed.job.task('only'), day(2));
    await claimOne(claimed.job, claimed.worker, 2);
    expect((await takeBack(line)).returned).toBe(1);
    expect(await isHeld(claimed.run)).toBe(false);
  });

  it('a heartbeat of an older incarnation changes nothing, and its run is reported as lost', async () => {
    const { worker, run } = await held(2);
    const before = await line.db.one(sql`select * from lease where worker_id = ${worker}`);
    expect(await renew(line, { worker, incarnation: 1, holds: [run.id] })).toMatchObject({ mine: null });
    expect(await line.db.one(sql`select * from lease where worker_id = ${worker}`)).toEqual(before);
    expect(await isHeld(run)).toBe(true);
    await finish(line, [run]);
  });

  it('a run that was lost three times ends in error, and its failure edges fire (I4)', async () => {
    const { job, run, worker } = await held();
    let current = run;
    let holder = worker;
    for (const loss of [1, 2, 3]) {
      watched.push(holder);
      await passing(30_000);
      const { returned, failed } = await takeBack(line);
      expect([returned, failed]).toEqual(loss < 3 ? [1, 0] : [0, 1]);
      holder = newId();
      if (loss < 3) current = await claimOne(job, holder);
    }
    expect(current.lease).toBe(3);
    expect(await historyOf(line, job.task('only'))).toMatchObject([
      { state: 'error', reason: textWith('three times'), attempt: 1 },
    ]);
    expect(await runsOf(line, job.task('f'))).toBe(1);
  });

  it('a run that kills each of its workers is given up, even if the worker returns under the same id (I4)', async () => {
    const { job, worker } = await held(1);
    for (const incarnation of [2, 3]) {
      await renew(line, { worker, incarnation, holds: [] });
      await claimOne(job, worker, incarnation);
    }
    await renew(line, { worker, incarnation: 4, holds: [] });
    await takeBack(line);
    expect(await historyOf(line, job.task('only'))).toMatchObject([{ state: 'error' }]);
  });

  it('a run that draining workers return does not count as lost, however often (I4)', async () => {
    const { job, run } = await held();
    let current = run;
    for (let i = 0; i < 5; i++) {
      expect(await giveBack(line, [current])).toBe(1);
      expect(await giveBack(line, [current])).toBe(0);
      current = await claimOne(job, newId());
    }
    expect(current.lease).toBe(6);
    expect(await line.db.one(sql`select losses from live where id = ${run.id}`)).toEqual({ losses: 0 });
    await finish(line, [current]);
  });

  it('a run that its worker reports as lost is handed out again twice without spending an attempt, then ends in error', async () => {
    const { job, run } = await held();
    let current = run;
    for (const losses of [1, 2]) {
      expect(await lose(line, [current])).toEqual({ returned: 1, failed: 0 });
      expect(await lose(line, [current])).toEqual({ returned: 0, failed: 0 });
      expect(await line.db.one(sql`select losses from live where id = ${run.id}`)).toEqual({ losses });
      current = await claimOne(job, newId());
    }
    expect(current.lease).toBe(3);
    expect(await lose(line, [current], 'the pod was evicted')).toEqual({ returned: 0, failed: 1 });
    expect(await lose(line, [current])).toEqual({ returned: 0, failed: 0 });
    expect(await historyOf(line, job.task('only'))).toMatchObject([
      { state: 'error', reason: 'it was lost three times: the pod was evicted', attempt: 1 },
    ]);
    expect(await runsOf(line, job.task('f'))).toBe(1);
  });

  it('lost runs of one report end or return independently, each with its own reason', async () => {
    const worn = await held();
    const fresh = await held();
    await line.db.exec(sql`update live set losses = 2 where id = ${worn.run.id}`);
    expect(await lose(line, [fresh.run, worn.run, { ...fresh.run, lease: 9 }])).toEqual({ returned: 1, failed: 1 });
    expect(await historyOf(line, worn.job.task('only'))).toMatchObject([{ state: 'error' }]);
    await finish(line, [await claimOne(fresh.job, newId())]);
  });

  it('a run with a requested cancellation is not started again after it was reported lost', async () => {
    const { job, run } = await held();
    expect(await cancel(line, run.id)).toBe('cancelling');
    expect(await lose(line, [run])).toEqual({ returned: 0, failed: 1 });
    expect(await claim(line, job.lane)).toEqual([]);
    expect(await historyOf(line, job.task('only'))).toMatchObject([{ state: 'cancelled' }]);
  });

  it('a run with a requested cancellation is not started again after its worker was lost', async () => {
    const lost = await held();
    expect(await cancel(line, lost.run.id)).toBe('cancelling');
    watched.push(lost.worker);
    await passing(30_000);
    await takeBack(line);
    expect(await claim(line, lost.job.lane)).toEqual([]);
    expect(await historyOf(line, lost.job.task('only'))).toMatchObject([{ state: 'cancelled' }]);
    expect(await runsOf(line, lost.job.task('f'))).toBe(0);

    const drained = await held();
    await cancel(line, drained.run.id);
    await giveBack(line, [drained.run]);
    expect(await claim(line, drained.job.lane)).toEqual([]);
    expect(await historyOf(line, drained.job.task('only'))).toMatchObject([{ state: 'cancelled' }]);

    const replaced = await held(1);
    await cancel(line, replaced.run.id);
    await renew(line, { worker: replaced.worker, incarnation: 2, holds: [] });
    await takeBack(line);
    expect(await claim(line, replaced.job.lane)).toEqual([]);
    expect(await historyOf(line, replaced.job.task('only'))).toMatchObject([{ state: 'cancelled' }]);
  });

  it('concurrent sweeps take a run back only once', async () => {
    const all = await Promise.all(Array.from({ length: 5 }, () => held()));
    watched.push(...all.map(({ worker }) => worker));
    await passing(30_000);
    const sweeps = await Promise.all([takeBack(line), takeBack(line), takeBack(line)]);
    expect(sweeps.reduce((sum, { returned }) => sum + returned, 0)).toBe(5);
    const losses = await line.db.rows(
      sql`select distinct losses from live where id = any (${all.map(({ run }) => run.id)}::uuid[])`,
    );
    expect(losses).toEqual([{ losses: 1 }]);
  });
});

describe('heartbeats', () => {
  it('a heartbeat returns the runs that the worker holds, with leases, and those that it must kill', async () => {
    const { worker, run } = await held();
    expect(await renew(line, { worker, holds: [run.id] })).toMatchObject({ mine: [`${run.id} 1`], cancelled: null });
    await cancel(line, run.id);
    expect(await renew(line, { worker, holds: [run.id] })).toMatchObject({ cancelled: [run.id] });
    await finish(line, [run], 'cancelled');
    expect(await renew(line, { worker, holds: [run.id] })).toMatchObject({ mine: null, cancelled: null });
  });

  it('a heartbeat of a worker that never claimed creates a lease without runs', async () => {
    expect(await renew(line, { worker: newId(), holds: [newId()] })).toMatchObject({ mine: null, returned: false });
  });
});
