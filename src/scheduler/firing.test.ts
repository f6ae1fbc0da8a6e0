/** The stage that fires triggers and counts tokens (I1, I2), with two concurrent connections if order matters. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  activate,
  claim,
  countOf,
  finish,
  fire,
  makePipeline,
  onConnections,
  type Pipeline,
  runAll,
  runsOf,
} from '../../test/harness/pipeline.ts';
import { sql } from '../kernel/sql.ts';

let line: Pipeline;
beforeAll(async () => {
  line = await makePipeline();
});
afterAll(() => line.close());

const day = (n: number): string => new Date(Date.UTC(2026, 0, n)).toISOString();
const daily = { start: day(1), period: '1d' };
const triggered = (threshold = 1) =>
  line.job({ triggers: [{ name: 't', ...daily }], tasks: [{ name: 'a', depends: ['trigger/t'], threshold }] });

describe('firing', () => {
  it('a firing makes a token and a run, and moves the trigger’s marks', async () => {
    const job = await triggered();
    expect(await fire(line, job.trigger('t'), [day(3)])).toEqual({ fired: 1, created: 1 });
    expect(await countOf(line, job.task('a'), day(3))).toBe(0);
    await fire(line, [job.trigger('t'), job.trigger('t')], [day(2), day(5)]);
    const marks = await line.db.one(sql`select earliest, latest from trigger where id = ${job.trigger('t')}`);
    expect(marks).toEqual({ earliest: new Date(day(2)), latest: new Date(day(5)) });
  });

  it('an instant fires once per cause, in one batch or in several (I1)', async () => {
    const job = await triggered();
    const t = job.trigger('t');
    expect(await fire(line, [t, t, t], [day(1), day(1), day(2)])).toEqual({ fired: 2, created: 2 });
    expect(await fire(line, [t, t], [day(2), day(3)])).toEqual({ fired: 1, created: 1 });
    expect(await fire(line, t, day(2), { cause: 'backfill of May' })).toEqual({ fired: 1, created: 1 });
    expect(await runsOf(line, job.task('a'))).toBe(4);
  });

  it('instants fire once although two connections fire them concurrently in opposite orders (I1)', async () => {
    for (let round = 0; round < 10; round++) {
      const jobs = await Promise.all([triggered(), triggered(), triggered()]);
      const triggers = jobs.map((job) => job.trigger('t'));
      const instants = [day(1), day(1), day(1)];
      const outcomes = await onConnections(line, [
        (one) => fire(one, triggers, instants),
        (two) => fire(two, triggers.toReversed(), instants),
      ]);
      expect(outcomes.reduce((sum, { fired }) => sum + fired, 0)).toBe(3);
      expect(outcomes.reduce((sum, { created }) => sum + created, 0)).toBe(3);
    }
  });

  it('tokens are placed at the instant plus the offset of each edge', async () => {
    const job = await line.job({
      triggers: [{ name: 't', ...daily }],
      tasks: [{ name: 'a', depends: ['trigger/t', 'trigger/t@1d'] }],
    });
    await fire(line, job.trigger('t'), day(2));
    expect(await countOf(line, job.task('a'), day(2))).toBe(1);
    expect(await countOf(line, job.task('a'), day(3))).toBe(1);
    expect(await runsOf(line, job.task('a'))).toBe(0);
    expect(await fire(line, job.trigger('t'), day(3))).toEqual({ fired: 1, created: 1 });
    expect((await claim(line, job.lane)).map((run) => run.instant.toISOString())).toEqual([day(3)]);
  });

  it('a firing of a trigger without edges is recorded and makes no run', async () => {
    const job = await line.job({ triggers: [{ name: 't', ...daily }], tasks: [{ name: 'a' }] });
    expect(await fire(line, job.trigger('t'), day(1))).toEqual({ fired: 1, created: 0 });
  });

  it('an empty batch fires nothing', async () => {
    expect(await fire(line, [], [])).toEqual({ fired: 0, created: 0 });
  });

  it('a firing writes an event for each run, with its cause, in the same commit', async () => {
    const job = await triggered();
    await fire(line, job.trigger('t'), day(1));
    const [run] = await claim(line, job.lane);
    const event = await line.db.one<{ body: string }>(
      sql`select type, cause, body from event where subject = ${run?.id}`,
    );
    expect(event).toMatchObject({ type: 'run.created', cause: job.trigger('t') });
    expect(JSON.parse(event.body)).toMatchObject({ job: job.id, task: job.task('a'), attempt: 1, priority: 'normal' });
  });
});

describe('order of runs', () => {
  const queued = async (order: 'earliest' | 'latest' | 'random'): Promise<string[]> => {
    const job = await triggered();
    const instants = Array.from({ length: 30 }, (_, i) => day(i + 1));
    await fire(
      line,
      instants.map(() => job.trigger('t')),
      instants,
      { order },
    );
    const seen: string[] = [];
    for (let i = 0; i < instants.length; i++)
      seen.push(...(await claim(line, job.lane, { places: 1 })).map((run) => run.instant.toISOString()));
    return seen;
  };

  it('runs that are created together are claimed in the order of the policy', async () => {
    const ascending = Array.from({ length: 30 }, (_, i) => day(i + 1));
    expect(await queued('earliest')).toEqual(ascending);
    expect(await queued('latest')).toEqual(ascending.toReversed());
    const shuffled = await queued('random');
    expect(shuffled).not.toEqual(ascending);
    expect(shuffled.toSorted()).toEqual(ascending);
  });
});

describe('token count', () => {
  it('a count that reaches the threshold makes a run, and keeps the surplus (I2)', async () => {
    const job = await triggered(3);
    const fireBy = (cause: string) => fire(line, job.trigger('t'), day(1), { cause });
    for (const [cause, created, left] of [
      ['1', 0, 1],
      ['2', 0, 2],
      ['3', 1, 0],
      ['4', 0, 1],
    ] as const) {
      expect(await fireBy(cause)).toEqual({ fired: 1, created });
      expect(await countOf(line, job.task('a'), day(1))).toBe(left);
    }
  });

  it('a task with threshold 1 and two parents runs twice', async () => {
    const job = await line.job({
      triggers: [
        { name: 't', ...daily },
        { name: 'u', ...daily },
      ],
      tasks: [{ name: 'a', depends: ['trigger/t', 'trigger/u'], threshold: 1 }],
    });
    expect(await fire(line, [job.trigger('t'), job.trigger('u')], [day(1), day(1)])).toEqual({ fired: 2, created: 2 });
    expect(await countOf(line, job.task('a'), day(1))).toBe(0);
  });

  it('a count of several thresholds at once makes as many runs', async () => {
    const triggers = Array.from({ length: 7 }, (_, i) => ({ name: `t${i}`, ...daily }));
    const depends = triggers.map(({ name }) => `trigger/${name}`);
    const job = await line.job({ triggers, tasks: [{ name: 'a', depends, threshold: 3 }] });
    const ids = triggers.map(({ name }) => job.trigger(name));
    expect(
      await fire(
        line,
        ids,
        ids.map(() => day(1)),
      ),
    ).toEqual({ fired: 7, created: 2 });
    expect(await countOf(line, job.task('a'), day(1))).toBe(1);
  });

  it('a run gets the highest priority of its tokens', async () => {
    const job = await triggered(2);
    const t = job.trigger('t');
    await fire(line, t, day(1), { cause: 'a', priority: 'high' });
    await fire(line, t, day(1), { cause: 'b', priority: 'backfill' });
    await fire(line, t, day(1), { cause: 'c', priority: 'backfill' });
    await fire(line, t, day(1), { cause: 'd', priority: 'low' });
    expect((await claim(line, job.lane)).map((run) => run.priority).toSorted()).toEqual(['high', 'low']);
  });

  it('a count is never negative: a constraint of the table refuses it', async () => {
    const job = await triggered(2);
    await fire(line, job.trigger('t'), day(1));
    await expect(line.db.exec(sql`update token set count = -1 where task_id = ${job.task('a')}`)).rejects.toMatchObject(
      {
        code: '23514',
      },
    );
  });
});

describe('fan-in', () => {
  it('a fan-in runs once although its two parents finish at the same time on two connections (I2, I3)', async () => {
    const job = await line.job({
      tasks: [{ name: 'left' }, { name: 'right' }, { name: 'join', depends: ['task/left', 'task/right'] }],
    });
    const rounds = 40;
    const instants = Array.from({ length: rounds }, (_, i) => day(i + 1));
    for (const parent of ['left', 'right'])
      await activate(
        line,
        instants.map(() => job.task(parent)),
        instants,
      );
    const runs = await claim(line, job.lane, { places: 1_000 });
    const of = (parent: string) =>
      runs
        .filter((run) => run.task_id === job.task(parent))
        .toSorted((a, b) => a.instant.getTime() - b.instant.getTime());
    const [left, right] = [of('left'), of('right')];
    for (let i = 0; i < rounds; i++) {
      const both = await Promise.all([left, right].map((side) => finish(line, side.slice(i, i + 1))));
      expect(both.reduce((sum, { created }) => sum + created, 0)).toBe(1);
    }
    expect(await runsOf(line, job.task('join'))).toBe(rounds);
    const counts = await line.db.rows(sql`select distinct count from token where task_id = ${job.task('join')}`);
    expect(counts).toEqual([{ count: 0 }]);
  });

  it('a fan-in at hundreds of instants in crossing batches runs once each and does not deadlock', async () => {
    const job = await line.job({
      tasks: [{ name: 'left' }, { name: 'right' }, { name: 'join', depends: ['task/left', 'task/right'] }],
    });
    const instants = Array.from({ length: 300 }, (_, i) => day(i + 1));
    for (const parent of ['left', 'right'])
      await activate(
        line,
        instants.map(() => job.task(parent)),
        instants,
      );
    const runs = await claim(line, job.lane, { places: 1_000 });
    const half = runs.filter((_, i) => i % 2 === 0);
    const rest = runs.filter((_, i) => i % 2 === 1).toReversed();
    await onConnections(line, [(one) => finish(one, half), (two) => finish(two, rest)]);
    expect(await runsOf(line, job.task('join'))).toBe(300);
  });

  it('a parent that runs again is counted again', async () => {
    const job = await line.job({ tasks: [{ name: 'up' }, { name: 'down', depends: ['task/up'] }] });
    for (const expected of [1, 2]) {
      await activate(line, job.task('up'), day(1));
      await runAll(line, job);
      expect(await runsOf(line, job.task('down'))).toBe(expected);
      await runAll(line, job);
    }
  });
});
