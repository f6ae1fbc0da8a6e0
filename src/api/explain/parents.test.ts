import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { textWith } from '../../../test/harness/expected.ts';
import { aliveScheduler, claimTask, type Why, whyToken } from '../../../test/harness/explaining.ts';
import { activate, finish, fire, makeJob, type MadeJob } from '../../../test/harness/runs.ts';
import { makeTenantApi, type TenantApi } from '../../../test/harness/tenant-api.ts';
import { newId } from '../../kernel/id.ts';
import { sql } from '../../kernel/sql.ts';

let api: TenantApi;
beforeAll(async () => {
  api = await makeTenantApi();
});
afterAll(() => api.close());
beforeEach(() => aliveScheduler(api));

const day = (n: number): string => `2026-01-0${n}T00:00:00.000Z`;
const far = '2999-01-01T00:00:00.000Z';
const daily = { name: 't', start: day(1), period: '1d' };

/** `b` waits for `a` by the given edge, and for `also`, which never runs by itself. */
function pair(a: object = {}, edge: object = { depends: ['task/a', 'task/also'] }): Promise<MadeJob> {
  return makeJob(api, { tasks: [{ name: 'a', ...a }, { name: 'also' }, { name: 'b', threshold: 2, ...edge }] });
}

async function end(job: MadeJob, task: string, state = 'success', instant = day(1)): Promise<void> {
  await activate(api, job.tasks[task], instant);
  await finish(api, await claimTask(api, job.tasks[task]), state);
}

const clear = (job: MadeJob): Promise<unknown> =>
  api.call('DELETE /api/jobs/{id}/tokens/{instant}', { params: { id: job.id, instant: day(1) } });
const pause = (job: MadeJob): Promise<unknown> =>
  api.call('PUT /api/jobs/{id}/paused', { params: { id: job.id }, body: { paused: true } });
const whyB = (job: MadeJob, instant = day(1)) => whyToken(api, job.tasks['b'], instant);

/** `b` waits for the trigger and for a task that never counts. */
function triggered(trigger: object, paused = false): Promise<MadeJob> {
  const tasks = [{ name: 'also' }, { name: 'b', depends: ['trigger/t', 'task/also'] }];
  return makeJob(api, { paused, triggers: [{ ...daily, ...trigger }], tasks });
}

describe('tokens that wait for a task', () => {
  const cases: Why[] = [
    {
      code: 'counting',
      when: 'nothing has counted',
      ask: async () => whyB(await pair()),
      says: 'it has 0 of the 2 counts',
      first: true,
    },
    {
      code: 'parent_not_begun',
      when: 'the parent has no token there',
      ask: async () => whyB(await pair()),
      says: 'nothing has counted for task/a',
    },
    {
      code: 'parent_waiting',
      when: 'the parent waits itself',
      ask: async () => {
        const tasks = [
          { name: 'x' },
          { name: 'a', depends: ['task/x', 'task/b@1d'] },
          { name: 'b', depends: ['task/a'] },
        ];
        const job = await makeJob(api, { tasks });
        await end(job, 'x');
        return whyB(job);
      },
      says: 'task/a waits itself, with 1 of 2 counts',
    },
    {
      code: 'parent_queued',
      when: 'the parent is queued',
      ask: async () => {
        const job = await pair();
        await activate(api, job.tasks['a'], day(1));
        return whyB(job);
      },
      says: 'task/a is queued for',
    },
    {
      code: 'parent_running',
      when: 'the parent runs',
      ask: async () => {
        const job = await pair();
        await activate(api, job.tasks['a'], day(1));
        await claimTask(api, job.tasks['a']);
        return whyB(job);
      },
      says: 'task/a is running for',
    },
    {
      code: 'parent_retrying',
      when: 'the parent is to be tried again',
      ask: async () => {
        const job = await pair({ retry: { max_attempts: 2, delay: '1h' } }, { depends_done: ['task/a', 'task/also'] });
        await end(job, 'a', 'failure');
        return whyB(job);
      },
      says: 'task/a is to be tried again for 2026-01-01T00:00:00Z, due at',
    },
    {
      code: 'parent_failed',
      when: 'the parent failed and its success counts',
      ask: async () => {
        const job = await pair();
        await end(job, 'a', 'timeout');
        return whyB(job);
      },
      says: 'task/a ended in timeout for 2026-01-01T00:00:00Z, where only its success counts',
    },
    {
      code: 'parent_succeeded',
      when: 'the parent succeeded and its failure counts',
      ask: async () => {
        const job = await pair({}, { depends_failure: ['task/a'], threshold: 1 });
        await end(job, 'a');
        return whyB(job);
      },
      says: 'where only its failure counts',
    },
    {
      code: 'parent_cancelled',
      when: 'the parent was cancelled',
      ask: async () => {
        const job = await pair({}, { depends_done: ['task/a'], threshold: 1 });
        const run = await activate(api, job.tasks['a'], day(1));
        await api.call('POST /api/runs/{id}/cancel', { params: { id: run } });
        return whyB(job);
      },
      says: 'task/a ended in cancelled',
    },
    {
      code: 'parent_counted_before',
      when: 'what it counted was cleared',
      ask: async () => {
        const project = `p ${newId()}`;
        const first = await makeJob(api, { project, name: 'first', tasks: [{ name: 'a' }] });
        const tasks = [{ name: 'b', depends: ['first/task/a', 'task/also'] }, { name: 'also' }];
        const job = await makeJob(api, { project, name: 'second', tasks });
        await end(first, 'a');
        api.advance(1_000);
        await clear(job);
        return whyB(job);
      },
      says: 'first/task/a ended for 2026-01-01T00:00:00Z, but what it counted was cleared',
    },
    {
      code: 'parent_paused',
      when: 'the job of the parent is paused',
      ask: async () => {
        const project = `p ${newId()}`;
        const first = await makeJob(api, { project, name: 'first', tasks: [{ name: 'a' }] });
        const job = await makeJob(api, { project, name: 'second', tasks: [{ name: 'b', depends: ['first/task/a'] }] });
        await pause(first);
        return whyB(job);
      },
      says: 'the job of first/task/a is paused',
    },
  ];
  it.each(cases)('the explanation has $code when $when', async ({ code, ask, says, first }) => {
    const why = await ask();
    expect(why.state).toBe('waiting');
    expect(why.reasons.find((reason) => reason.code === code)?.message).toContain(says);
    if (first) expect(why.reasons[0]?.code).toBe(code);
  });

  it('the explanation lists which parents have counted', async () => {
    const job = await pair();
    await end(job, 'a');
    const why = await whyB(job);
    expect(why.reasons.map(({ code }) => code)).toEqual(['counting', 'parent_not_begun']);
    expect(why.reasons[0]?.data).toMatchObject({
      count: 1,
      threshold: 2,
      parents: [
        { name: 'task/a', counted: true },
        { name: 'task/also', counted: false },
      ],
    });
    expect(why.summary).toContain('has not run: it has 1 of the 2 counts it needs; nothing has counted for task/also');
  });

  it('the offset of an edge selects the instant of the parent', async () => {
    const job = await makeJob(api, { tasks: [{ name: 'a' }, { name: 'b', depends: ['task/a@1d'] }] });
    await end(job, 'a', 'failure', day(1));
    const why = await whyB(job, day(2));
    expect(why.reasons[1]).toMatchObject({ code: 'parent_failed', data: { instant: day(1) } });
    expect(why.next).toMatch(/^millrace activate 'p .*\/job' a 2026-01-01T00:00:00Z runs it again$/);
  });

  it('the chain leads over waiting tokens to the one that blocks them all', async () => {
    const tasks = [
      { name: 'a' },
      { name: 'b', depends: ['task/a'] },
      { name: 'c', depends: ['task/b'] },
      { name: 'd', depends: ['task/c', 'task/a'] },
    ];
    const job = await makeJob(api, { tasks });
    await end(job, 'a', 'failure');
    const why = await whyToken(api, job.tasks['c'], day(1));
    expect(why.chain.map(({ what, message }) => [what, message])).toEqual([
      ['token', 'task/c waits for 2026-01-01T00:00:00Z, for task/b'],
      ['token', 'task/b waits for 2026-01-01T00:00:00Z, for task/a'],
      ['token', 'task/a failed for 2026-01-01T00:00:00Z'],
    ]);
    // an ended parent comes before one that only waits
    const last = await whyToken(api, job.tasks['d'], day(1));
    expect(last.chain[0]?.message).toBe('task/d waits for 2026-01-01T00:00:00Z, among others for task/a');
    expect(last.chain.map(({ id }) => id)).toEqual([`${job.tasks['d']}@${day(1)}`, `${job.tasks['a']}@${day(1)}`]);
  });
});

describe('tokens that wait for a trigger', () => {
  const cases: Why[] = [
    {
      code: 'trigger_not_due',
      when: 'its time has not come',
      ask: async () => whyB(await triggered({ start: far }), far),
      says: 'trigger/t is due at 2999-01-01T00:00:00Z',
    },
    {
      code: 'trigger_off_schedule',
      when: 'it does not fire then',
      ask: async () => whyB(await triggered({}), '2026-01-01T12:00:00.000Z'),
      says: 'its next instant after that is 2026-01-02T00:00:00Z',
    },
    {
      code: 'trigger_off_schedule',
      when: 'it has not started by then',
      ask: async () => whyB(await triggered({ start: far }), day(1)),
      says: 'it starts with 2999',
    },
    {
      code: 'trigger_off_schedule',
      when: 'it ended before',
      ask: async () => whyB(await triggered({ end: day(3) }), day(3)),
      says: 'it ends before 2026-01-03',
    },
    {
      code: 'trigger_overdue',
      when: 'its time is over',
      ask: async () => whyB(await triggered({})),
      says: 'was due at 2026-01-01T00:00:00Z and has not fired yet',
    },
    {
      code: 'trigger_paused',
      when: 'its job is paused',
      ask: async () => whyB(await triggered({}, true)),
      says: 'does not fire while its job is paused',
    },
    {
      code: 'trigger_skipped',
      when: 'it was missed for good',
      ask: async () => {
        const job = await triggered({ catchup: 'none' });
        await fire(api, job.triggers['t'], day(3));
        return whyB(job, day(2));
      },
      says: 'trigger/t skipped 2026-01-02T00:00:00Z: it was missed, and catchup is none',
    },
    {
      code: 'trigger_catching_up',
      when: 'it is being caught up',
      ask: async () => {
        const job = await triggered({});
        await api.db.exec(sql`
          insert into catchup (trigger_id, from_at, to_at, policy, pieces, seed)
          values (${job.triggers['t']}, ${day(1)}, ${day(5)}, 'earliest', 1, 1)`);
        return whyB(job);
      },
      says: 'missed 2026-01-01T00:00:00Z',
    },
    {
      code: 'trigger_counted_before',
      when: 'the instant was cleared since',
      ask: async () => {
        const job = await triggered({});
        await fire(api, job.triggers['t'], day(1));
        await clear(job);
        return whyB(job);
      },
      says: 'trigger/t fired for 2026-01-01T00:00:00Z before the clear',
    },
  ];
  it.each(cases)('the explanation has $code when $when', async ({ code, ask, says }) => {
    const why = await ask();
    expect(why.state).toBe('waiting');
    expect(why.reasons.find((reason) => reason.code === code)?.message).toContain(says);
  });

  it('the chain leads to the trigger', async () => {
    const tasks = [
      { name: 'a', depends: ['trigger/t'] },
      { name: 'b', depends: ['task/a'] },
    ];
    const job = await makeJob(api, { triggers: [{ ...daily, start: far }], tasks });
    const why = await whyB(job, far);
    expect(why.chain.map(({ what }) => what)).toEqual(['token', 'token', 'trigger']);
    expect(why.chain.at(-1)).toMatchObject({ id: job.triggers['t'], message: textWith('is due at 2999') });
  });
});
