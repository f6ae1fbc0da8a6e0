/** Runs that are handed out in the commit of a report: to which polls, in which order, and which are left to claims. */
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { makeContext, type TestContext } from '../../test/harness/engine-context.ts';
import { activate, fire, makePipeline, pauseTasks, type Pipeline, type TestJob } from '../../test/harness/pipeline.ts';
import { maxClaimBytes, type Poll, type Reported } from '../contract/engine.ts';
import type { ClaimedRun, Report } from '../contract/wire.ts';
import { engine } from '../engine/engine.ts';
import { newId } from '../kernel/id.ts';
import { sql } from '../kernel/sql.ts';
import { handedOver } from './telemetry.ts';

const noon = '2026-06-01T12:00:00Z';
const later = '2026-06-02T12:00:00Z';
const triggers = [{ name: 't', start: noon, period: '1d' }];
const pair = [
  { name: 'parent', depends: ['trigger/t'] },
  { name: 'child', depends: ['task/parent'] },
];

let line: Pipeline;
let ctx: TestContext;
let worker: string;
let hints: (readonly string[] | undefined)[];
let counted: number[];
beforeAll(async () => {
  line = await makePipeline();
});
afterAll(() => line.close());
beforeEach(() => {
  ctx = makeContext({ address: line.address, pool: line.pool, time: line.time });
  worker = newId();
  hints = [];
  ctx.hub.onAny('ready', (_, lanes) => hints.push(lanes));
  counted = [];
  handedOver.on(ctx.telemetry, ({ runs }) => counted.push(runs));
});

const pollFor = (job: Pick<TestJob, 'lane'>, free = 1, more: Partial<Poll> = {}): Poll => {
  return { worker, incarnation: 1, free, lanes: [job.lane], ...more };
};

async function claimed(job: TestJob, free = 1): Promise<ClaimedRun[]> {
  return (await engine.runs.claim(ctx, [pollFor(job, free)])).flat();
}

function report(
  runs: readonly ClaimedRun[],
  polls: readonly Poll[],
  state: Report['state'] = 'success',
): Promise<Reported> {
  const reports = runs.map(({ tenant, run, lease }) => {
    return { tenant, run, lease, state, reason: null, exit_code: null, started_at: null, worker };
  });
  return engine.runs.report(ctx, reports, polls);
}

const holderOf = (run: ClaimedRun | undefined) =>
  line.db.maybeOne<{ worker_id: string; lease: number; held: boolean }>(sql`
    select live.worker_id, live.lease, lease.until > ${new Date(line.time.now())} as held
      from live
      join lease using (worker_id)
     where id = ${run?.run ?? newId()}`);

it('the child of a reported run comes with the answer, leased to the worker, and no hint is sent', async () => {
  const job = await line.job({ triggers, tasks: pair });
  await fire(line, job.trigger('t'), noon);
  const parents = await claimed(job);
  const { runs, applied, created } = await report(parents, [pollFor(job)]);
  expect([applied, created]).toEqual([1, 1]);
  const child = runs?.[0]?.[0];
  expect(child).toMatchObject({ task: job.task('child'), lease: 1, attempt: 1 });
  expect(await holderOf(child)).toEqual({ worker_id: worker, lease: 1, held: true });
  expect(counted).toEqual([1]);
  expect(hints).toEqual([]);
});

it('a repeated report hands over nothing', async () => {
  const job = await line.job({ triggers, tasks: pair });
  await fire(line, job.trigger('t'), noon);
  const parents = await claimed(job);
  const [child] = (await report(parents, [pollFor(job)])).runs?.flat() ?? [];
  const again = await report(parents, [pollFor(job)]);
  expect([again.applied, again.runs]).toEqual([0, [[]]]);
  expect(await holderOf(child)).toMatchObject({ lease: 1 });
});

it('a hand-over never overtakes the queue: the run that has waited longest comes before the child', async () => {
  const job = await line.job({ triggers, tasks: [...pair, { name: 'other' }] });
  await fire(line, job.trigger('t'), noon);
  const parents = await claimed(job);
  await activate(line, job.task('other'), noon, 'normal');
  line.time.advance(1_000);
  const [first] = (await report(parents, [pollFor(job)])).runs?.flat() ?? [];
  expect(first?.task).toBe(job.task('other'));
  // its place is filled, so more runs may be ready: other workers get a hint
  expect(hints).toEqual([[job.lane]]);
  expect((await claimed(job)).map(({ task }) => task)).toEqual([job.task('child')]);
});

it('a run of higher priority is handed over before the child', async () => {
  const job = await line.job({ triggers, tasks: [...pair, { name: 'urgent' }] });
  await fire(line, job.trigger('t'), noon);
  const parents = await claimed(job);
  await activate(line, job.task('urgent'), noon, 'high');
  const { runs } = await report(parents, [pollFor(job, 2)]);
  expect(runs?.flat().map(({ task }) => task)).toEqual([job.task('urgent'), job.task('child')]);
});

it('a child is handed over only once its gate has room', async () => {
  const tasks = [pair[0] ?? {}, { ...pair[1], max_running: 1 }];
  const job = await line.job({ triggers, tasks });
  await fire(line, [job.trigger('t'), job.trigger('t')], [noon, later]);
  const parents = await claimed(job, 2);
  const { runs } = await report(parents, [pollFor(job, 2)]);
  expect(runs?.flat()).toHaveLength(1);
  const after = await report(runs?.flat() ?? [], [pollFor(job, 2)]);
  expect(after.runs?.flat().map(({ task }) => task)).toEqual([job.task('child')]);
});

it('runs of a paused job stay in the queue, and ready runs behind them are announced', async () => {
  const job = await line.job({ triggers, tasks: pair });
  const project = 'paused';
  const paused = await line.job({ project, tasks: [{ name: 'only', queue: job.lane.slice('none:'.length) }] });
  await fire(line, job.trigger('t'), noon);
  const parents = await claimed(job);
  await activate(line, paused.task('only'), noon, 'high');
  await pauseTasks(line, paused, true);
  const { runs } = await report(parents, [pollFor(job)]);
  expect(runs?.flat()).toEqual([]);
  expect(hints).toEqual([[job.lane]]);
  expect((await claimed(job)).map(({ task }) => task)).toEqual([job.task('child')]);
});

it('a child in lanes without offered places is announced', async () => {
  const job = await line.job({ triggers, tasks: [pair[0] ?? {}, { ...pair[1], queue: 'elsewhere' }] });
  await fire(line, job.trigger('t'), noon);
  const { runs } = await report(await claimed(job), [pollFor(job)]);
  expect([runs, hints]).toEqual([[[]], [['none:elsewhere']]]);
});

it('each poll gets at most as many runs as it has places, and only of its lanes', async () => {
  const child = (name: string, queue?: string) => ({ name, depends: ['task/parent'], ...(queue && { queue }) });
  const job = await line.job({
    triggers,
    tasks: [pair[0] ?? {}, child('a'), child('b'), child('c', 'q2'), child('d', 'q2')],
  });
  await fire(line, job.trigger('t'), noon);
  const parents = await claimed(job);
  const { runs } = await report(parents, [pollFor(job, 5), pollFor({ lane: 'none:q2' }, 1)]);
  const [own = [], other = []] = runs?.map((list) => list.map(({ task }) => task)) ?? [];
  expect(new Set(own)).toEqual(new Set([job.task('a'), job.task('b')]));
  expect([own.length, other.length]).toEqual([2, 1]);
  expect(hints).toEqual([['none:q2']]);
});

it('workers get the runs of a hand-over in turns', async () => {
  const children = ['a', 'b', 'c', 'd', 'e'].map((name) => ({ name, depends: ['task/parent'] }));
  const job = await line.job({ triggers, tasks: [...pair.slice(0, 1), ...children] });
  await fire(line, job.trigger('t'), noon);
  const parents = await claimed(job);
  const others = [newId(), newId()];
  await line.db.exec(sql`
    insert into lease (worker_id, incarnation, until)
    select id, 1, ${new Date(line.time.now() + 30_000)} from unnest(${others}::uuid[]) as id`);
  const [b = '', c = ''] = others;
  const polls = [pollFor(job, 3), pollFor(job, 1, { worker: b }), pollFor(job, 3, { worker: c })];
  const lists = ((await report(parents, polls)).runs ?? []).map((runs) => runs.map(({ run }) => run));
  const [first = [], second = [], third = []] = lists;
  // ids are drawn in the order in which the runs were made, which is that of their rank
  expect(lists.flat().toSorted()).toEqual([first[0], second[0], third[0], first[1], third[1]]);
  expect(hints).toEqual([]);
});

it('a poll of an earlier incarnation of a worker gets nothing', async () => {
  const job = await line.job({ triggers, tasks: pair });
  await fire(line, job.trigger('t'), noon);
  const parents = await claimed(job);
  const { runs } = await report(parents, [pollFor(job), pollFor(job, 1, { incarnation: 2 })]);
  expect(runs?.map((list) => list.length)).toEqual([0, 1]);
});

it('a worker whose lease is locked by its heartbeat gets nothing without waiting, and the child is announced', async () => {
  const job = await line.job({ triggers, tasks: pair });
  await fire(line, job.trigger('t'), noon);
  const parents = await claimed(job);
  const client = await line.pool.connect();
  try {
    await client.query('begin');
    await client.query('select 1 from lease where worker_id = $1 for update', [worker]);
    const { runs, applied } = await report(parents, [pollFor(job)]);
    expect([applied, runs, hints]).toEqual([1, [[]], [[job.lane]]]);
  } finally {
    await client.query('rollback');
    client.release();
  }
  expect(await claimed(job)).toHaveLength(1);
});

it('runs whose params do not fit into an answer return to the queue, and do not count as lost', async () => {
  const job = await line.job({ triggers, tasks: pair });
  const instants = Array.from({ length: 8 }, (_, i) => new Date(Date.UTC(2026, 5, 1 + i, 12)).toISOString());
  await fire(
    line,
    instants.map(() => job.trigger('t')),
    instants,
  );
  const parents = await claimed(job, 8);
  const params = JSON.stringify({ text: 'x'.repeat(maxClaimBytes / 4) });
  await line.db.exec(sql`
    insert into instant_params (job_id, instant, params)
    select ${job.id}, i, ${params}::json from unnest(${instants}::timestamptz[]) as i`);
  const got = (await report(parents, [pollFor(job, 8)])).runs?.flat() ?? [];
  expect(got).toHaveLength(4);
  const rest: ClaimedRun[] = [];
  while (got.length + rest.length < 8) rest.push(...(await claimed(job, 8)));
  expect(new Set([...got, ...rest].map(({ run }) => run)).size).toBe(8);
  expect(await line.db.one(sql`select max(losses) as losses from live`)).toEqual({ losses: 0 });
});
