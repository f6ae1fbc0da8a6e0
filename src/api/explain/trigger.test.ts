import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { refusal, textWith } from '../../../test/harness/expected.ts';
import { aliveScheduler, type Why, whyTrigger } from '../../../test/harness/explaining.ts';
import { fire, makeJob, type MadeJob } from '../../../test/harness/runs.ts';
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

function triggered(trigger: object = {}, more: object = {}): Promise<MadeJob> {
  return makeJob(api, {
    triggers: [{ name: 't', start: day(1), period: '1d', ...trigger }],
    tasks: [{ name: 'a', depends: ['trigger/t'] }],
    ...more,
  });
}

async function catchingUp(job: MadeJob): Promise<void> {
  await api.db.exec(sql`
    insert into catchup (trigger_id, from_at, to_at, policy, next_piece, pieces, seed)
    values (${job.triggers['t']}, ${day(1)}, ${day(5)}, 'earliest', 1, 2, 1)`);
}

/** Explains the trigger, or one of its instants. */
const why = (job: MadeJob, instant?: string) => whyTrigger(api, job.triggers['t'], instant);

interface Told extends Why {
  readonly state: string;
}

const cases: Told[] = [
  {
    code: 'trigger_not_due',
    when: 'its next instant lies ahead',
    ask: async () => why(await triggered({ start: far, offset: '1h' })),
    says: 'its next instant is due at 2999-01-01T01:00:00Z, for 2999-01-01T00:00:00Z',
    state: 'scheduled',
    first: true,
  },
  {
    code: 'trigger_overdue',
    when: 'its time is over and it has not fired',
    ask: async () => why(await triggered()),
    says: 'it was due at 2026-01-01T00:00:00Z and has not fired since',
    state: 'due',
    first: true,
  },
  {
    code: 'no_scheduler',
    when: 'no scheduler could fire it',
    ask: async () => {
      api.schedulers.splice(0);
      return why(await triggered());
    },
    says: 'no scheduler of this tenant is running',
    state: 'due',
    first: true,
  },
  {
    code: 'paused',
    when: 'its job is paused',
    ask: async () => {
      const job = await triggered();
      await api.call('PUT /api/jobs/{id}/paused', { params: { id: job.id }, body: { paused: true } });
      return why(job);
    },
    says: 'by key:operator',
    state: 'paused',
    first: true,
  },
  {
    code: 'trigger_ended',
    when: 'no instant is left',
    ask: async () => {
      const job = await triggered({ end: day(2) });
      await fire(api, job.triggers['t'], day(1));
      return why(job);
    },
    says: 'no instant of it is left before its end, 2026-01-02T00:00:00Z',
    state: 'ended',
    first: true,
  },
  {
    code: 'trigger_removed',
    when: 'its job no longer names it',
    ask: async () => {
      const project = `p ${newId()}`;
      const job = await triggered({}, { project });
      await makeJob(api, { project });
      return why(job);
    },
    says: 'no longer part of its job',
    state: 'removed',
    first: true,
  },
  {
    code: 'trigger_catching_up',
    when: 'missed instants are still to be fired',
    ask: async () => {
      const job = await triggered({ end: day(6) });
      await catchingUp(job);
      await fire(api, job.triggers['t'], day(5));
      return why(job);
    },
    says: 'about 2 missed instants from 2026-01-01T00:00:00Z on',
    state: 'catching_up',
  },
  {
    code: 'trigger_unused',
    when: 'no task depends on it',
    ask: async () => why(await triggered({ start: far }, { tasks: [{ name: 'a' }] })),
    says: 'no task depends on it',
    state: 'scheduled',
  },
  {
    code: 'trigger_fired',
    when: 'it has fired before',
    ask: async () => {
      const job = await triggered();
      await fire(api, job.triggers['t'], day(3));
      return why(job);
    },
    says: 'it fired last for 2026-01-03T00:00:00Z',
    state: 'due',
  },
];

const instants: Told[] = [
  {
    code: 'trigger_fired',
    when: 'it fired',
    ask: async () => {
      const job = await triggered();
      await fire(api, job.triggers['t'], day(2));
      return why(job, day(2));
    },
    says: 'it fired for 2026-01-02T00:00:00Z',
    state: 'fired',
    first: true,
  },
  {
    code: 'trigger_not_due',
    when: 'it lies ahead',
    ask: async () => why(await triggered(), far),
    says: 'it is due at 2999-01-01T00:00:00Z',
    state: 'scheduled',
    first: true,
  },
  {
    code: 'trigger_off_schedule',
    when: 'it is not on the schedule',
    ask: async () => why(await triggered(), '2026-01-01T12:00:00.000Z'),
    says: 'its next instant after that is 2026-01-02T00:00:00Z',
    state: 'off_schedule',
    first: true,
  },
  {
    code: 'trigger_paused',
    when: 'its job is paused',
    ask: async () => why(await triggered({}, { paused: true }), day(2)),
    says: 'while its job is paused',
    state: 'paused',
    first: true,
  },
  {
    code: 'trigger_skipped',
    when: 'it was missed and only the last one fires',
    ask: async () => {
      const job = await triggered({ catchup: 'last' });
      await fire(api, job.triggers['t'], day(3));
      return why(job, day(2));
    },
    says: 'it was missed, and catchup fires the last one only',
    state: 'skipped',
    first: true,
  },
  {
    code: 'trigger_skipped',
    when: 'it lies outside of the window',
    ask: async () => {
      const job = await triggered({ catchup_window: '1h' });
      await fire(api, job.triggers['t'], day(3));
      return why(job, day(2));
    },
    says: 'outside of the catchup window',
    state: 'skipped',
    first: true,
  },
  {
    code: 'trigger_catching_up',
    when: 'it is being caught up',
    ask: async () => {
      const job = await triggered();
      await catchingUp(job);
      return why(job, day(2));
    },
    says: 'to catch up',
    state: 'catching_up',
    first: true,
  },
  {
    code: 'no_scheduler',
    when: 'it is due and no scheduler could fire it',
    ask: async () => {
      api.schedulers.splice(0);
      return why(await triggered(), day(1));
    },
    says: 'no scheduler',
    state: 'due',
    first: true,
  },
];

async function check({ code, ask, says, first, state }: Told): Promise<void> {
  const answer = await ask();
  expect(answer.state).toBe(state);
  expect(answer.reasons.find((reason) => reason.code === code)?.message).toContain(says);
  if (first) expect(answer.reasons[0]?.code).toBe(code);
}

describe('explanations of triggers', () => {
  it.each(cases)('the explanation has $code when $when', check);

  it('the chain names the user who applied the job', async () => {
    const job = await triggered({ start: far }, { project: 'who', name: 'j' });
    const { chain, subject, summary } = await why(job);
    expect(subject).toMatchObject({ kind: 'trigger', name: 'who/j/trigger/t', instant: null, job: job.id });
    expect(summary).toBe('who/j/trigger/t waits for its time: its next instant is due at 2999-01-01T00:00:00Z.');
    expect(chain).toMatchObject([
      { what: 'person', id: 'key:operator', message: textWith('applied version 1 of who/j') },
    ]);
  });
});

describe('explanations of instants', () => {
  it.each(instants)('the explanation has $code when $when', check);

  it('an instant that a backfill fired names the backfill', async () => {
    const job = await triggered();
    const backfill = newId();
    await api.db.exec(sql`
      insert into firing (trigger_id, instant, cause) values (${job.triggers['t']}, ${day(2)}, ${backfill})`);
    expect((await why(job, day(2))).chain[0]).toMatchObject({ what: 'backfill', id: backfill });
    await fire(api, job.triggers['t'], day(2));
    const both = await why(job, day(2));
    expect(both.chain[0]).toMatchObject({
      what: 'trigger',
      message: textWith(`on schedule, and by the backfill ${backfill}`),
    });
    expect(both.reasons[0]?.data).toMatchObject({ causes: ['schedule', backfill] });
  });
});

describe('unknown triggers', () => {
  it('an unknown trigger is not found', async () => {
    await expect(whyTrigger(api, newId())).rejects.toEqual(refusal(404));
    await expect(whyTrigger(api, 'nonsense')).rejects.toEqual(refusal(400));
    const job = await triggered();
    await expect(whyTrigger(api, job.triggers['t'], 'yesterday')).rejects.toEqual(refusal(400));
  });
});
