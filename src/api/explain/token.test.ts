import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { refusal, textWith } from '../../../test/harness/expected.ts';
import { aliveScheduler, claimTask, type Why, whyToken } from '../../../test/harness/explaining.ts';
import { activate, finish, fire, makeJob, type MadeJob } from '../../../test/harness/runs.ts';
import { makeTenantApi, type TenantApi } from '../../../test/harness/tenant-api.ts';
import { newId } from '../../kernel/id.ts';

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

describe('obstacles of the token itself', () => {
  const cases: Why[] = [
    {
      code: 'no_parents',
      when: 'nothing leads to it',
      ask: async () => whyToken(api, (await makeJob(api)).tasks['only'], day(1)),
      says: 'only when a user activates it',
      first: true,
    },
    {
      code: 'threshold_out_of_reach',
      when: 'too little leads to it',
      ask: async () => {
        const job = await pair({}, { depends: ['task/a'] });
        return whyB(job);
      },
      says: 'only 1 edge leads to it, fewer than the 2 counts it needs',
      first: true,
    },
    {
      code: 'cleared',
      when: 'it was cleared',
      ask: async () => {
        const job = await pair();
        await end(job, 'a');
        await clear(job);
        return whyB(job);
      },
      says: 'by key:operator',
      first: true,
    },
    {
      code: 'paused',
      when: 'it is full and its job paused',
      ask: async () => {
        const job = await makeJob(api, { triggers: [daily], tasks: [{ name: 'b', depends: ['trigger/t'] }] });
        await pause(job);
        await fire(api, job.triggers['t'], day(1));
        return whyB(job);
      },
      says: 'its job is paused since',
      first: true,
    },
    {
      code: 'held',
      when: 'its threshold was lowered',
      ask: async () => {
        const project = `p ${newId()}`;
        const b = { name: 'b', depends: ['trigger/t'] };
        const job = await makeJob(api, { project, triggers: [daily], tasks: [{ ...b, threshold: 2 }] });
        await fire(api, job.triggers['t'], day(1));
        return whyB(await makeJob(api, { project, triggers: [daily], tasks: [b] }));
      },
      says: 'released at the next check',
      first: true,
    },
    {
      code: 'task_removed',
      when: 'the task is gone',
      ask: async () => {
        const project = `p ${newId()}`;
        const old = await makeJob(api, { project, tasks: [{ name: 'b', depends: ['task/a'] }, { name: 'a' }] });
        await makeJob(api, { project, tasks: [{ name: 'a' }] });
        return whyB(old);
      },
      says: 'no longer part of its job',
      first: true,
    },
    {
      code: 'no_scheduler',
      when: 'no scheduler is there',
      ask: async () => {
        api.schedulers.splice(0);
        return whyB(await triggered({}));
      },
      says: 'no scheduler',
      first: true,
    },
  ];
  it.each(cases)('the explanation has $code when $when', async ({ code, ask, says, first }) => {
    const why = await ask();
    expect(why.state).toBe('waiting');
    expect(why.reasons.find((reason) => reason.code === code)?.message).toContain(says);
    if (first) expect(why.reasons[0]?.code).toBe(code);
  });
});

describe('tokens with a run', () => {
  it('a token is explained by its run', async () => {
    const job = await makeJob(api);
    const run = await activate(api, job.tasks['only'], day(1));
    const queued = await whyToken(api, job.tasks['only'], day(1));
    expect(queued).toMatchObject({ state: 'active', subject: { kind: 'token', id: `${job.tasks['only']}@${day(1)}` } });
    expect(queued.chain[0]).toMatchObject({ what: 'run', id: run });
    await finish(api, await claimTask(api, job.tasks['only']), 'failure');
    const failed = await whyToken(api, job.tasks['only'], day(1));
    expect([failed.state, ...failed.reasons.map(({ code }) => code)]).toEqual([
      'failure',
      'failed',
      'activated',
      'counted_nothing',
    ]);
  });

  it('the time of a scheduled retry comes first', async () => {
    const job = await makeJob(api, { tasks: [{ name: 'only', retry: { max_attempts: 2, delay: '1h' } }] });
    await end(job, 'only', 'failure');
    const why = await whyToken(api, job.tasks['only'], day(1));
    expect(why.state).toBe('retry');
    expect(why.reasons.map(({ code }) => code)).toEqual(['retry_scheduled', 'failed', 'activated']);
    await pause(job);
    const paused = await whyToken(api, job.tasks['only'], day(1));
    expect(paused.reasons.map(({ code }) => code)).toEqual(['retry_scheduled', 'paused', 'failed', 'activated']);
  });
});

describe('tokens that have run and count again', () => {
  it('the explanation gives the count towards the next run', async () => {
    const job = await pair();
    for (const task of ['a', 'also']) await end(job, task);
    await finish(api, await claimTask(api, job.tasks['b']));
    await end(job, 'a');
    const why = await whyB(job);
    expect(why.state).toBe('success');
    expect(why.reasons.at(-1)).toMatchObject({ code: 'counting', message: textWith('1 of the 2 counts') });
  });
});

describe('explained instant', () => {
  it('without an instant, the newest of the task is explained, else that of its job', async () => {
    const job = await pair();
    await end(job, 'a', 'success', day(1));
    await end(job, 'a', 'success', day(2));
    await activate(api, job.tasks['b'], day(1));
    expect((await whyToken(api, job.tasks['b'])).subject.instant).toBe(day(2));
    expect((await whyToken(api, job.tasks['also'])).subject.instant).toBe(day(2));
    const alone = await makeJob(api, { tasks: [{ name: 'a' }, { name: 'b' }] });
    await end(alone, 'a', 'success', day(3));
    expect((await whyToken(api, alone.tasks['b'])).subject.instant).toBe(day(3));
  });

  it('without any instant, the explanation lists the next firings of the triggers', async () => {
    const job = await triggered({ start: far });
    const why = await whyB(job, undefined);
    const open = await whyToken(api, job.tasks['b']);
    expect(why.subject.instant).toBe(day(1));
    expect(open).toMatchObject({ state: 'waiting', subject: { id: job.tasks['b'], instant: null } });
    expect(open.reasons.map(({ code }) => code)).toEqual(['never_begun', 'trigger_not_due']);
    expect(open.summary).toContain('trigger/t: its next instant is due at 2999-01-01T00:00:00Z');
    const bare = await whyToken(api, (await makeJob(api, { project: 'bare', name: 'j' })).tasks['only']);
    expect(bare.next).toBe('millrace run bare/j');
  });

  it('an instant may have any offset, encoded or not', async () => {
    const job = await makeJob(api);
    const task = job.tasks['only'] ?? '';
    for (const id of [`${task}@2026-01-01T02:00:00+02:00`, encodeURIComponent(`${task.toUpperCase()}@${day(1)}`)]) {
      const answer = await api.fetch('GET', `/api/explain/token/${id}`, {
        caller: { kind: 'key', role: 'viewer', tenantId: api.ctx.tenant.id, tenant: 'default', actor: 'v' },
      });
      expect(await answer.json()).toMatchObject({ subject: { id: `${task}@${day(1)}` } });
    }
  });

  it.each(['nonsense', `${newId()}@`, `${newId()}@yesterday`, `${newId()}@${day(1)}@${day(2)}`])(
    'the id %s is rejected',
    async (id) => {
      await expect(api.call('GET /api/explain/token/{id}', { params: { id } })).rejects.toMatchObject({
        status: 400,
        problem: { faults: [{ path: 'path.id', message: textWith('TASK@INSTANT') }] },
      });
    },
  );

  it('an unknown task is not found', async () => {
    await expect(whyToken(api, newId(), day(1))).rejects.toEqual(refusal(404));
  });
});
