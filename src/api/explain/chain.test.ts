import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { anyText } from '../../../test/harness/expected.ts';
import { aliveScheduler, claimTask, whyRun } from '../../../test/harness/explaining.ts';
import { activate, finish, fire, makeJob } from '../../../test/harness/runs.ts';
import { makeTenantApi, type TenantApi } from '../../../test/harness/tenant-api.ts';
import { newId } from '../../kernel/id.ts';
import { sql } from '../../kernel/sql.ts';

let api: TenantApi;
beforeAll(async () => {
  api = await makeTenantApi();
});
afterAll(() => api.close());

beforeEach(() => {
  aliveScheduler(api);
});

const day = (n: number): string => `2026-01-0${n}T00:00:00.000Z`;
const daily = { name: 't', start: day(1), period: '1d' };

describe('origin of a run', () => {
  const whole = {
    triggers: [daily],
    tasks: [
      { name: 'a', depends: ['trigger/t'] },
      { name: 'b', depends: ['task/a'] },
    ],
  };

  async function firstOf(task: string | undefined): Promise<string> {
    const { id } = await api.db.one<{ id: string }>(sql`select id from live where task_id = ${task}`);
    return id;
  }

  it('the chain leads over the run that counted last to the trigger', async () => {
    const job = await makeJob(api, whole);
    await fire(api, job.triggers['t'], day(2));
    const a = await firstOf(job.tasks['a']);
    await finish(api, await claimTask(api, job.tasks['a']));
    const b = await firstOf(job.tasks['b']);
    const why = await whyRun(api, b);
    expect(why.chain).toEqual([
      {
        what: 'run',
        id: b,
        at: anyText,
        message: `task/b was queued for 2026-01-02T00:00:00Z when task/a ended in success`,
      },
      { what: 'run', id: a, at: anyText, message: 'task/a was queued for 2026-01-02T00:00:00Z' },
      {
        what: 'trigger',
        id: job.triggers['t'],
        at: anyText,
        message: 'trigger/t fired for 2026-01-02T00:00:00Z',
      },
    ]);
    expect(why.reasons.at(-1)).toMatchObject({ code: 'threshold_reached', data: { run: a, threshold: 1 } });
    expect((await whyRun(api, a)).reasons.map(({ code }) => code)).toEqual(['succeeded', 'fired', 'counted_children']);
  });

  it('an instant that was caught up is reported', async () => {
    const job = await makeJob(api, whole);
    await api.db.exec(sql`
      select fire_triggers(${[job.triggers['t']]}::uuid[], ${[day(2)]}::timestamptz[], 'schedule', 'backfill', 'earliest',
                           ${new Date(api.ctx.time.now())})`);
    const why = await whyRun(api, await firstOf(job.tasks['a']));
    expect(why.reasons.at(-1)).toMatchObject({ code: 'caught_up', data: { trigger: job.triggers['t'] } });
  });

  it('a backfill and its creator are reported', async () => {
    const job = await makeJob(api, whole);
    const backfill = newId();
    const at = new Date(api.ctx.time.now());
    await api.db.exec(sql`
      insert into backfill (id, job_id, name, first_at, last_at, policy, priority, only_missing, seed, actor, created_at)
      values (${backfill}, ${job.id}, 'again', ${day(2)}, ${day(3)}, 'earliest', 'low', false, 1, 'key:ann', ${at})`);
    await api.db.exec(sql`
      select fire_triggers(${[job.triggers['t']]}::uuid[], ${[day(2)]}::timestamptz[], ${backfill}, 'low', 'earliest', ${at})`);
    const why = await whyRun(api, await firstOf(job.tasks['a']));
    expect(why.reasons.at(-1)).toMatchObject({ code: 'backfilled', data: { backfill, actor: 'key:ann' } });
    expect(why.chain.slice(-2)).toMatchObject([
      { what: 'backfill', id: backfill, message: 'the backfill again' },
      { what: 'person', id: 'key:ann' },
    ]);
  });

  it('the user who ran the whole job is reported', async () => {
    const job = await makeJob(api, { tasks: [{ name: 'a' }, { name: 'b' }] });
    const { runs } = await api.call('POST /api/jobs/{id}/run', { params: { id: job.id }, body: {} });
    for (const run of runs) {
      const why = await whyRun(api, run);
      expect(why.reasons.at(-1)).toMatchObject({ code: 'run_now', message: 'key:operator ran the job' });
      expect(why.chain.at(-1)).toMatchObject({ what: 'person', id: 'key:operator' });
    }
  });

  it('the chain ends where the history ends', async () => {
    const run = await activate(api, (await makeJob(api)).tasks['only'], day(1));
    await api.db.exec(sql`update live set cause = ${newId()} where id = ${run}`);
    const why = await whyRun(api, run);
    expect(why.reasons.at(-1)?.code).toBe('cause_forgotten');
    expect(why.chain).toHaveLength(1);
  });

  it('an endless chain is cut', async () => {
    const job = await makeJob(api, { tasks: [{ name: 'only', depends: ['task/only@1d'] }] });
    await activate(api, job.tasks['only'], day(1));
    for (let n = 0; n < 40; n++) await finish(api, await claimTask(api, job.tasks['only']));
    const why = await whyRun(api, await firstOf(job.tasks['only']));
    expect(why.chain).toHaveLength(31);
    expect(why.chain.at(-1)?.what).toBe('more');
  });
});
