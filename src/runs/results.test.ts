/** The stage that applies results (I3): edges, retries, and repeated, late or reordered reports. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  activate,
  claim,
  type ClaimedRow,
  countOf,
  finish,
  giveBack,
  historyOf,
  makePipeline,
  onConnections,
  type Outcome,
  type Pipeline,
  queueRetries,
  runAll,
  runsOf,
  type Stage,
  type TestJob,
} from '../../test/harness/pipeline.ts';
import { sql } from '../kernel/sql.ts';
import { openPool } from '../postgres/pool/pool.ts';

let line: Pipeline;
beforeAll(async () => {
  line = await makePipeline();
});
afterAll(() => line.close());

const day = (n: number): string => new Date(Date.UTC(2026, 0, n)).toISOString();

/** Activates a task at a day and claims the run. */
async function started(job: TestJob, task = 'a', instant = day(1)): Promise<ClaimedRow> {
  await activate(line, job.task(task), instant);
  const run = (await claim(line, job.lane)).find(({ task_id: id }) => id === job.task(task));
  if (run === undefined) throw new Error('nothing to claim');
  return run;
}

describe('edges', () => {
  const table: [Outcome, string[]][] = [
    ['success', ['done', 'success']],
    ['failure', ['done', 'failure']],
    ['timeout', ['done', 'failure']],
    ['error', ['done', 'failure']],
    ['cancelled', []],
  ];
  it.each(table)('each kind of edge fires as specified after %s', async (outcome, expected) => {
    const job = await line.job({
      tasks: [
        { name: 'a' },
        { name: 'success', depends: ['task/a'] },
        { name: 'failure', depends_failure: ['task/a'] },
        { name: 'done', depends_done: ['task/a'] },
      ],
    });
    expect(await finish(line, [await started(job)], outcome)).toEqual({
      applied: 1,
      created: expected.length,
      retries: 0,
    });
    const fired: string[] = [];
    for (const name of ['done', 'failure', 'success']) if ((await runsOf(line, job.task(name))) > 0) fired.push(name);
    expect(fired).toEqual(expected);
  });

  it('an edge moves the instant by its offset', async () => {
    const job = await line.job({ tasks: [{ name: 'a' }, { name: 'b', depends: ['task/a@1d'] }] });
    await finish(line, [await started(job)]);
    expect((await claim(line, job.lane)).map((run) => run.instant.toISOString())).toEqual([day(2)]);
  });

  it('an edge passes the priority on and names the run that caused it', async () => {
    const job = await line.job({ tasks: [{ name: 'a' }, { name: 'b', depends: ['task/a'] }] });
    await activate(line, job.task('a'), day(1), 'low');
    const [parent] = await runAll(line, job);
    const child = await line.db.one(sql`select priority, cause from live where task_id = ${job.task('b')}`);
    expect(child).toEqual({ priority: 'low', cause: parent?.id });
  });

  it('an edge to the task itself at a later instant continues', async () => {
    const job = await line.job({ tasks: [{ name: 'a', depends: ['task/a@1d'] }] });
    await finish(line, [await started(job)]);
    expect((await claim(line, job.lane)).map((run) => run.instant.toISOString())).toEqual([day(2)]);
  });

  it('the edges at the commit apply, even if the run is of an older version', async () => {
    const before = { tasks: [{ name: 'a' }, { name: 'b', depends: ['task/a'] }, { name: 'c' }] };
    const job = await line.job(before);
    const run = await started(job);
    const changed = await job.change({ tasks: [{ name: 'a' }, { name: 'b' }, { name: 'c', depends: ['task/a'] }] });
    expect(changed.applied.version).toBe(2);
    expect(run.version).toBe(1);
    await finish(line, [run]);
    expect([await runsOf(line, job.task('b')), await runsOf(line, job.task('c'))]).toEqual([0, 1]);
  });
});

describe('failing tasks', () => {
  it('a task without a retry block fails, and the next result is applied (Waterwheel’s bug 1)', async () => {
    const job = await line.job({ tasks: [{ name: 'a' }, { name: 'b', depends_failure: ['task/a'] }] });
    expect(await finish(line, [await started(job)], 'failure')).toEqual({ applied: 1, created: 1, retries: 0 });
    expect(await finish(line, [await started(job, 'a', day(2))], 'timeout')).toMatchObject({ applied: 1, retries: 0 });
  });

  const retrying = (retry: object) =>
    line.job({
      tasks: [
        { name: 'a', retry },
        { name: 'b', depends: ['task/a'] },
        { name: 'f', depends_failure: ['task/a'] },
      ],
    });
  const dueIn = async (job: TestJob): Promise<number | undefined> => {
    const row = await line.db.maybeOne<{ due_at: Date }>(
      sql`select due_at from retry where task_id = ${job.task('a')}`,
    );
    return row && row.due_at.getTime() - line.time.now();
  };
  /** The attempt fails, and the retry, if any, becomes due. */
  const failOnce = async (job: TestJob, outcome: Outcome = 'failure'): Promise<number | undefined> => {
    await runAll(line, job, outcome);
    const wait = await dueIn(job);
    if (wait === undefined) return undefined;
    line.time.advance(wait - 1);
    expect(await queueRetries(line)).toBe(0);
    line.time.advance(1);
    expect(await queueRetries(line)).toBe(1);
    return wait;
  };

  it('a task is retried after its delay, as often as configured, and only the last failure fires edges', async () => {
    const job = await retrying({ max_attempts: 3, delay: '10s' });
    await activate(line, job.task('a'), day(1));
    const waits = [await failOnce(job), await failOnce(job), await failOnce(job)];
    expect(waits).toEqual([10_000, 10_000, undefined]);
    expect((await historyOf(line, job.task('a'))).map((run) => run.attempt)).toEqual([1, 2, 3]);
    expect([await runsOf(line, job.task('b')), await runsOf(line, job.task('f'))]).toEqual([0, 1]);
    expect(await countOf(line, job.task('a'), day(1))).toBe(0);
  });

  it('the delay grows by its factor, up to its cap', async () => {
    const job = await retrying({ max_attempts: 6, delay: '1s', factor: 3, cap: '20s' });
    await activate(line, job.task('a'), day(1));
    const waits: (number | undefined)[] = [];
    for (let i = 0; i < 6; i++) waits.push(await failOnce(job));
    expect(waits).toEqual([1_000, 3_000, 9_000, 20_000, 20_000, undefined]);
  });

  it('the delay is capped even if the powers of its factor overflow', async () => {
    const job = await retrying({ max_attempts: 100, delay: '1s', factor: 10, cap: '1h' });
    await activate(line, job.task('a'), day(1));
    await line.db.exec(sql`update live set attempt = 99 where task_id = ${job.task('a')}`);
    expect(await failOnce(job)).toBe(3_600_000);
  });

  it('jitter shortens the delay, and never extends it', async () => {
    const job = await retrying({ max_attempts: 2, delay: '100s', jitter: 0.2 });
    const instants = Array.from({ length: 40 }, (_, i) => day(i + 1));
    await activate(
      line,
      instants.map(() => job.task('a')),
      instants,
    );
    await runAll(line, job, 'failure');
    const rows = await line.db.rows<{ due_at: Date }>(sql`select due_at from retry where task_id = ${job.task('a')}`);
    const waits = rows.map((row) => row.due_at.getTime() - line.time.now());
    expect(Math.min(...waits)).toBeGreaterThanOrEqual(80_000);
    expect(Math.max(...waits)).toBeLessThanOrEqual(100_000);
    expect(new Set(waits).size).toBeGreaterThan(10);
    line.time.advance(100_000);
    expect(await queueRetries(line)).toBe(40);
  });

  it('a task is retried only for the states in its list', async () => {
    const job = await retrying({ max_attempts: 2, delay: '1s', on: ['error'] });
    expect(await finish(line, [await started(job)], 'failure')).toMatchObject({ retries: 0, created: 1 });
    expect(await finish(line, [await started(job, 'a', day(2))], 'error')).toMatchObject({ retries: 1, created: 0 });
    const standard = await retrying({ max_attempts: 2, delay: '1s' });
    expect(await finish(line, [await started(standard)], 'error')).toMatchObject({ retries: 0, created: 1 });
    expect(await finish(line, [await started(standard, 'a', day(2))], 'timeout')).toMatchObject({ retries: 1 });
    expect(await finish(line, [await started(standard, 'a', day(3))], 'cancelled')).toMatchObject({
      retries: 0,
      created: 0,
    });
    line.time.advance(1_000);
    await queueRetries(line);
  });

  it('a task that succeeds on a later attempt fires its edges once, without consuming a token', async () => {
    const job = await retrying({ max_attempts: 3, delay: '1s' });
    await activate(line, job.task('a'), day(1));
    await failOnce(job);
    const [run] = await claim(line, job.lane);
    expect(run).toMatchObject({ attempt: 2, lease: 1 });
    expect(await finish(line, run ? [run] : [])).toMatchObject({ applied: 1, created: 1 });
    expect([await runsOf(line, job.task('b')), await runsOf(line, job.task('f'))]).toEqual([1, 0]);
    expect(await countOf(line, job.task('a'), day(1))).toBe(0);
  });

  it('a retry is queued once, even if two schedulers check at the same time', async () => {
    const job = await retrying({ max_attempts: 2, delay: '1s' });
    const instants = Array.from({ length: 50 }, (_, i) => day(i + 1));
    await activate(
      line,
      instants.map(() => job.task('a')),
      instants,
    );
    await runAll(line, job, 'failure');
    line.time.advance(1_000);
    const queued = await Promise.all([queueRetries(line, 30), queueRetries(line, 30), queueRetries(line, 30)]);
    expect(queued.reduce((sum, n) => sum + n, 0)).toBe(50);
  });
});

describe('reports', () => {
  const parentAndChild = () => line.job({ tasks: [{ name: 'a' }, { name: 'b', depends: ['task/a'] }] });

  it('a repeated report is ignored, whatever its content (I3)', async () => {
    const job = await parentAndChild();
    const run = await started(job);
    expect(await finish(line, [run])).toMatchObject({ applied: 1, created: 1 });
    for (const outcome of ['success', 'failure'] as const)
      expect(await finish(line, [run], outcome)).toEqual({ applied: 0, created: 0, retries: 0 });
    expect(await historyOf(line, job.task('a'))).toMatchObject([{ state: 'success' }]);
  });

  it('a report that is repeated in one batch takes effect once (I3)', async () => {
    const job = await parentAndChild();
    const run = await started(job);
    expect(await finish(line, [run, run, run], ['success', 'success', 'success'])).toMatchObject({
      applied: 1,
      created: 1,
    });
    expect(await runsOf(line, job.task('b'))).toBe(1);
  });

  it('a report on two connections at once takes effect once (I3)', async () => {
    const job = await parentAndChild();
    const instants = Array.from({ length: 30 }, (_, i) => day(i + 1));
    await activate(
      line,
      instants.map(() => job.task('a')),
      instants,
    );
    const runs = await claim(line, job.lane);
    const outcomes = await Promise.all([
      finish(line, runs),
      finish(line, runs.toReversed()),
      finish(line, runs, 'failure'),
    ]);
    expect(outcomes.reduce((sum, { applied }) => sum + applied, 0)).toBe(30);
  });

  it('a report of an older lease is ignored, and the current one still counts (I3)', async () => {
    const job = await parentAndChild();
    const run = await started(job);
    await giveBack(line, [run]);
    expect(await finish(line, [run])).toMatchObject({ applied: 0 });
    const [again] = await claim(line, job.lane);
    expect(again).toMatchObject({ id: run.id, lease: 2, attempt: 1 });
    expect(await finish(line, [run], 'failure')).toMatchObject({ applied: 0 });
    expect(await finish(line, again ? [again] : [])).toMatchObject({ applied: 1, created: 1 });
  });

  it('a report of a future lease or an unknown run is ignored', async () => {
    const job = await parentAndChild();
    const run = await started(job);
    expect(
      await finish(line, [
        { ...run, lease: 2 },
        { id: crypto.randomUUID(), lease: 1 },
      ]),
    ).toMatchObject({ applied: 0 });
    expect(await finish(line, [])).toEqual({ applied: 0, created: 0, retries: 0 });
    await finish(line, [run]);
  });

  it('reports of many runs in opposite orders do not deadlock, whatever the plan', async () => {
    const job = await parentAndChild();
    const contrary = openPool({
      address: line.address,
      schema: 'millrace',
      application: 'contrary',
      max: 2,
      allowPooler: false,
      onOpen: async (client) => {
        await client.query('set enable_hashjoin = off; set enable_mergejoin = off; set enable_seqscan = off');
      },
      onError: () => {},
    });
    for (let round = 0; round < 10; round++) {
      const instants = Array.from({ length: 100 }, (_, i) => day(i + 1));
      await activate(
        line,
        instants.map(() => job.task('a')),
        instants,
      );
      const runs = await claim(line, job.lane);
      const works = [runs, runs.toReversed()].map((some) => (stage: Stage) => finish(stage, some));
      await onConnections({ ...line, pool: contrary }, works);
      await runAll(line, job);
    }
    await contrary.end();
    expect(await runsOf(line, job.task('b'))).toBe(1_000);
  });

  it('a report writes the final event with state and reason in the same commit', async () => {
    const job = await parentAndChild();
    const run = await started(job);
    await finish(line, [run], 'timeout');
    const events = await line.db.rows<{ type: string; body: string }>(sql`
      select type, body from event where subject = ${run.id} order by seq`);
    expect(events.map((event) => event.type)).toEqual(['run.created', 'run.finished']);
    expect(JSON.parse(events[1]?.body ?? '')).toMatchObject({
      state: 'timeout',
      retry: false,
      attempt: 1,
      job: job.id,
    });
  });
});
