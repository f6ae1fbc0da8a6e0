import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { refusal, textWith } from '../../../test/harness/expected.ts';
import { aliveScheduler, aliveWorker, claimTask, type Why, whyRun } from '../../../test/harness/explaining.ts';
import { activate, aWorker, finish, makeJob, type MadeJob } from '../../../test/harness/runs.ts';
import { keyOf, makeTenantApi, type TenantApi } from '../../../test/harness/tenant-api.ts';
import { newId } from '../../kernel/id.ts';
import { sql } from '../../kernel/sql.ts';
import { findWorkers } from './fleet.ts';

let api: TenantApi;
beforeAll(async () => {
  api = await makeTenantApi();
});
afterAll(() => api.close());

beforeEach(() => {
  api.workers.splice(0);
  aliveScheduler(api);
});

const day = (n: number): string => `2026-01-0${n}T00:00:00.000Z`;

/** A run that waits in its own queue. */
async function ready(parts: object = {}, task: object = {}): Promise<{ job: MadeJob; queue: string; run: string }> {
  const queue = `q-${newId()}`;
  const job = await makeJob(api, { tasks: [{ name: 'only', queue, ...task }], ...parts });
  return { job, queue, run: await activate(api, job.tasks['only'], day(1)) };
}

/** The id of a worker; its end distinguishes workers of the same name. */
const boxId = '01890a5d-0000-7000-8000-000000a1b2c3';

const process = { process: { command: ['true'] } };

/** A run that a stand-in worker holds. */
async function running(task: object = {}): Promise<{ job: MadeJob; run: string; lease: number }> {
  const { job } = await ready({}, task);
  const [claimed] = await claimTask(api, job.tasks['only']);
  return { job, run: claimed?.id ?? '', lease: claimed?.lease ?? 0 };
}

async function ended(state: string, task: object = {}): Promise<{ job: MadeJob; run: string }> {
  const { job, run, lease } = await running(task);
  await finish(api, [{ id: run, task_id: '', lease }], state);
  return { job, run };
}

async function limited(parts: object, task: object = {}): Promise<string> {
  const job = await makeJob(api, { tasks: [{ name: 'only', ...task }], ...parts });
  await activate(api, job.tasks['only'], day(1));
  return activate(api, job.tasks['only'], day(2));
}

const takeBack = (): Promise<number> =>
  api.db.exec(sql`select take_back_runs(interval '10 seconds', ${new Date(api.ctx.time.now())})`);

describe('runs that have not started', () => {
  const cases: Why[] = [
    {
      code: 'no_worker',
      when: 'no worker is alive',
      ask: async () => {
        aliveWorker(api, { id: boxId, name: 'gone', lastSeenAt: new Date(api.ctx.time.now() - 40_000) });
        return whyRun(api, (await ready()).run);
      },
      says: 'the last heartbeat came from gone (a1b2c3) at',
      first: true,
    },
    {
      code: 'runtime_unserved',
      when: 'no worker has the runtime',
      ask: async () => {
        aliveWorker(api, { runtimes: ['none', 'process'] });
        return whyRun(api, (await ready({}, { docker: { image: 'i', args: [] } })).run);
      },
      says: 'no worker alive serves docker tasks; available runtimes: none, process',
      first: true,
    },
    {
      code: 'runtime_unavailable',
      when: 'the runtime of the worker does not answer',
      ask: async () => {
        aliveWorker(api, { unavailable: { docker: 'the daemon does not answer' } });
        return whyRun(api, (await ready({}, { queue: 'default', docker: { image: 'i', args: [] } })).run);
      },
      says: 'the daemon does not answer',
      first: true,
    },
    {
      code: 'queue_unserved',
      when: 'no worker with the runtime serves the queue',
      ask: async () => {
        const { run, queue } = await ready();
        aliveWorker(api);
        aliveWorker(api, { runtimes: ['process'], queues: [queue] });
        return whyRun(api, run);
      },
      says: 'with the runtime none; served queues: default',
      first: true,
    },
    {
      code: 'places_taken',
      when: 'all places are taken',
      ask: async () => {
        const { queue, job } = await ready({}, process);
        await activate(api, job.tasks['only'], day(2));
        aliveWorker(api, { runtimes: ['process'], queues: ['a', queue], places: 2, running: 2 });
        return whyRun(api, await activate(api, job.tasks['only'], day(3)));
      },
      says: 'all 2 places of the 1 worker that may take it are taken; about 2 runs of its lane come first',
      first: true,
    },
    {
      code: 'queued',
      when: 'there is room',
      ask: async () => {
        const { run, queue } = await ready({}, process);
        aliveWorker(api, { runtimes: ['process'], queues: [queue], places: 8, running: 3 });
        return whyRun(api, run);
      },
      says: 'it is the next of its lane, and 5 of 8 places are free',
      first: true,
    },
    {
      code: 'queued',
      when: 'no place is free, and it takes none',
      ask: async () => {
        const { run, queue } = await ready();
        aliveWorker(api, { queues: [queue], places: 2, running: 2 });
        return whyRun(api, run);
      },
      says: 'it is the next of its lane, and it takes no place',
      first: true,
    },
    {
      code: 'no_worker',
      when: 'the only worker is leaving',
      ask: async () => {
        const { run, queue } = await ready();
        aliveWorker(api, { id: boxId, name: 'leaver', queues: [queue], places: 0 });
        return whyRun(api, run);
      },
      says: 'the last heartbeat came from leaver (a1b2c3) at',
      first: true,
    },
    {
      code: 'paused',
      when: 'its job is paused',
      ask: async () => {
        const { run, job } = await ready();
        await api.call('PUT /api/jobs/{id}/paused', { params: { id: job.id }, body: { paused: true } });
        return whyRun(api, run);
      },
      says: 'by key:operator',
      first: true,
    },
    {
      code: 'job_limit',
      when: 'its job has as many active instants as it may',
      ask: async () => whyRun(api, await limited({ max_active_instants: 1 })),
      says: 'its job may have 1 active instant, and has 1, among them 2026-01-01T00:00:00Z since',
      first: true,
    },
    {
      code: 'task_limit',
      when: 'its task has as many runs as it may',
      ask: async () => whyRun(api, await limited({}, { max_running: 1 })),
      says: 'its task may have 1 run at once, and has 1',
      first: true,
    },
    {
      code: 'pool_full',
      when: 'its pool is full',
      ask: async () => whyRun(api, await limited({ project: 'pools', name: 'dear' }, { pool: 'licences' })),
      says: '1 of 1 places of the pool licences are taken, by pools/dear/task/only',
      first: true,
    },
    {
      code: 'lease_lost',
      when: 'its worker was lost',
      ask: async () => {
        const { run } = await running();
        api.advance(60_000);
        await takeBack();
        return whyRun(api, run);
      },
      says: 'was lost once, and it was handed out again',
    },
    {
      code: 'task_removed',
      when: 'its task is gone, and it has not been taken out yet',
      ask: async () => {
        const { run, job } = await ready();
        await api.db.exec(sql`
          update task set removed_at = now(), paused = true where id = ${job.tasks['only']}`);
        return whyRun(api, run);
      },
      says: 'no longer part of its job',
      first: true,
    },
    {
      code: 'no_scheduler',
      when: 'no scheduler is there',
      ask: async () => {
        api.schedulers.splice(0);
        return whyRun(api, await limited({}, { max_running: 1 }));
      },
      says: 'no scheduler of this tenant is running',
    },
  ];
  it.each(cases)('the explanation has $code when $when', async ({ code, ask, says, first }) => {
    const why = await ask();
    expect(why).toMatchObject({ state: 'active', subject: { kind: 'run' } });
    expect(why.reasons.find((reason) => reason.code === code)?.message).toContain(says);
    if (first) expect(why.reasons[0]?.code).toBe(code);
  });

  it('a limit and a missing worker are both named, with advice for the limit', async () => {
    const why = await whyRun(api, await limited({ project: 'both', name: 'job' }, { pool: 'two things' }));
    expect(why.reasons.map(({ code }) => code)).toEqual(['pool_full', 'no_worker', 'activated']);
    expect(why.next).toContain("millrace pool set 'two things'");
    expect(why.summary).toMatch(
      /^both\/job\/task\/only at 2026-01-02T00:00:00Z has not started: 1 of 1 places .*; no worker is alive\.$/,
    );
  });

  it.each([
    ['default', 'start one: millrace worker --functions FILE.js'],
    ['gpu', 'start one: millrace worker --functions FILE.js --queue gpu'],
  ])('the advice is to start a worker with functions, for the queue %s', async (queue, next) => {
    aliveWorker(api);
    const why = await whyRun(api, (await ready({}, { queue, function: { name: 'f' } })).run);
    expect([why.reasons[0]?.code, why.next]).toEqual(['runtime_unserved', next]);
  });

  it('a pool without places is reported as such, even if a place is still held', async () => {
    const run = await limited({}, { pool: 'dbp' });
    await api.call('PUT /api/pools/{name}', { params: { name: 'dbp' }, body: { places: 0 } });
    const why = await whyRun(api, run);
    expect(why.reasons[0]).toMatchObject({ code: 'pool_full', message: 'the pool dbp has no places' });
    expect(why.next).toBe('millrace pool set dbp N gives it places');
  });

  it('a worker that has been silent for long does not count as alive, even with a long lease', async () => {
    const lastSeenAt = new Date(api.ctx.time.now() - 40_000);
    const there = aliveWorker(api);
    aliveWorker(api, { lastSeenAt });
    const settings = { ...api.ctx.settings, leaseMs: 3_600_000 };
    expect((await findWorkers({ ...api.ctx, settings })).alive).toEqual([there]);
  });

  it('the holders of a limit are listed, running runs first', async () => {
    const job = await makeJob(api, { tasks: [{ name: 'only', max_running: 2 }] });
    const [first, second, third] = [
      await activate(api, job.tasks['only'], day(1)),
      await activate(api, job.tasks['only'], day(2)),
      await activate(api, job.tasks['only'], day(3)),
    ];
    await api.db.exec(sql`update live set worker_id = ${aWorker}, incarnation = 1, lease = 1 where id = ${second}`);
    const { reasons } = await whyRun(api, third);
    expect(reasons[0]).toMatchObject({
      code: 'task_limit',
      data: {
        capacity: 2,
        used: 2,
        before: 0,
        holders: [
          { run: second, running: true },
          { run: first, running: false },
        ],
      },
    });
  });

  it('the active instants are listed', async () => {
    const { reasons } = await whyRun(api, await limited({ max_active_instants: 1 }));
    expect(reasons[0]).toMatchObject({ code: 'job_limit', data: { instants: [{ instant: day(1) }] } });
  });
});

describe('runs that a worker holds', () => {
  const cases: Why[] = [
    {
      code: 'running',
      when: 'all is well',
      ask: async () => {
        aliveWorker(api, { id: aWorker, name: 'box9' });
        return whyRun(api, (await running()).run);
      },
      says: `the worker box9 (${aWorker.slice(-6)}) has run it since`,
      first: true,
    },
    {
      code: 'cancel_wished',
      when: 'someone cancelled it',
      ask: async () => {
        const { run } = await running();
        await api.call('POST /api/runs/{id}/cancel', { params: { id: run } });
        return whyRun(api, run);
      },
      says: 'will kill it',
      first: true,
    },
    {
      code: 'worker_silent',
      when: 'its lease has run out',
      ask: async () => {
        const { run } = await running();
        api.advance(60_000);
        return whyRun(api, run);
      },
      says: 'has not renewed its lease',
      first: true,
    },
  ];
  it.each(cases)('the explanation has $code when $when', async ({ code, ask, says, first }) => {
    const why = await ask();
    expect(why.state).toBe('running');
    expect(why.reasons.find((reason) => reason.code === code)?.message).toContain(says);
    if (first) expect(why.reasons[0]?.code).toBe(code);
  });
});

describe('runs that have ended', () => {
  it.each([
    ['success', 'succeeded'],
    ['failure', 'failed'],
    ['timeout', 'timed_out'],
    ['error', 'errored'],
    ['cancelled', 'cancelled'],
  ])('a run that ended in %s has the reason %s, and its creator', async (state, code) => {
    const { run } = await ended(state);
    const why = await whyRun(api, run);
    expect(why.state).toBe(state);
    expect(why.reasons.map((reason) => reason.code)).toEqual([code, 'activated', 'counted_nothing']);
  });

  it('a run with a scheduled retry names its time', async () => {
    const { run } = await ended('failure', { retry: { max_attempts: 3, delay: '1h' } });
    const why = await whyRun(api, run);
    expect(why.reasons.at(-1)).toMatchObject({
      code: 'retry_scheduled',
      message: textWith('attempt 2 of 3 comes at'),
      data: { attempt: 2 },
    });
  });

  it('a run and its retry name each other', async () => {
    const { run, job } = await ended('failure', { retry: { max_attempts: 2, delay: '1s' } });
    api.advance(2_000);
    await api.db.exec(sql`select queue_retries(10, ${new Date(api.ctx.time.now())})`);
    const [second] = await claimTask(api, job.tasks['only']);
    const [first, again] = [await whyRun(api, run), await whyRun(api, second?.id ?? '')];
    expect(first.reasons.at(-1)).toMatchObject({ code: 'tried_again', data: { run: second?.id } });
    expect(again.reasons.at(-1)).toMatchObject({
      code: 'retried',
      message: 'it is attempt 2, because attempt 1 ended in failure',
      data: { run },
    });
    expect(again.chain.map(({ what, id }) => [what, id])).toEqual([
      ['run', second?.id],
      ['run', run],
      ['person', 'key:operator'],
    ]);
  });

  it('the tasks for which a run counts depend on its result', async () => {
    const job = await makeJob(api, {
      tasks: [
        { name: 'only' },
        { name: 'then', depends: ['task/only', 'task/other'] },
        { name: 'alarm', depends_failure: ['task/only'] },
        { name: 'other' },
      ],
    });
    const run = await activate(api, job.tasks['only'], day(1));
    await finish(api, await claimTask(api, job.tasks['only']));
    const { reasons } = await whyRun(api, run);
    expect(reasons.at(-1)).toMatchObject({
      code: 'counted_children',
      message: 'it counts for task/then',
      data: { children: [{ name: 'task/then', count: 1, threshold: 2, state: 'waiting' }] },
    });
  });
});

describe('access to explanations', () => {
  it('viewers may read explanations', async () => {
    const { run } = await ready();
    const seen = await api.as(keyOf('viewer'))('GET /api/explain/run/{id}', { params: { id: run } });
    expect(seen.subject).toMatchObject({ kind: 'run', id: run, instant: day(1) });
  });

  it('an unknown id is not found', async () => {
    await expect(whyRun(api, newId())).rejects.toEqual(refusal(404));
    await expect(whyRun(api, 'nonsense')).rejects.toEqual(refusal(400));
  });
});
