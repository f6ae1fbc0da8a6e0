/** The plan of a backfill, rejected requests, and repeated requests. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { refusal, textWith } from '../../../test/harness/expected.ts';
import { fire, makeJob, type MadeJob } from '../../../test/harness/runs.ts';
import { keyOf, makeTenantApi, type TenantApi } from '../../../test/harness/tenant-api.ts';
import { newestPosition } from '../../events/queries.ts';
import { newId } from '../../kernel/id.ts';
import { sql } from '../../kernel/sql.ts';

let api: TenantApi;
beforeAll(async () => {
  api = await makeTenantApi();
});
afterEach(async () => {
  await api.db.exec(sql`delete from backfill_trigger`);
  await api.db.exec(sql`delete from backfill`);
});
afterAll(() => api.close());

const day = (n: number): string => new Date(Date.UTC(2026, 0, n)).toISOString();
const daily = { name: 't', start: day(1), period: '1d', catchup: 'none' };

const makeDaily = (task: object = {}, trigger: object = {}): Promise<MadeJob> =>
  makeJob(api, {
    triggers: [{ ...daily, ...trigger }],
    tasks: [{ name: 'a', depends: ['trigger/t'], ...task }],
  });
const ask = (job: MadeJob, body: object) =>
  api.call('POST /api/jobs/{id}/backfill', {
    params: { id: job.id },
    body: { first: day(1), last: day(3), ...body },
  });
const look = (id: string) => api.call('GET /api/backfills/{id}', { params: { id } });
const cancel = (id: string) => api.call('POST /api/backfills/{id}/cancel', { params: { id } });

async function begin(job: MadeJob, body: object = {}) {
  const made = await ask(job, body);
  if (!('id' in made)) throw new Error('a dry run was not asked for');
  return made;
}

async function preview(job: MadeJob, body: object = {}) {
  const shown = await ask(job, { dry_run: true, ...body });
  if ('id' in shown) throw new Error('a dry run was asked for');
  return shown;
}

describe('dry runs of a backfill', () => {
  it('a dry run lists exactly the instants of the range, both ends included, page by page, and changes nothing', async () => {
    const job = await makeJob(api, {
      triggers: [
        { ...daily, name: 'days' },
        { ...daily, name: 'other days', period: '2d' },
      ],
      tasks: [{ name: 'a', depends: ['trigger/days'] }],
    });
    const before = await newestPosition(api.db);
    const first = await preview(job, { first: day(2), last: day(5), limit: 3 });
    expect(first).toEqual({
      dry_run: true,
      instants: { total: 6 },
      items: [
        { instant: day(2), triggers: ['days'] },
        { instant: day(3), triggers: ['days', 'other days'] },
        { instant: day(4), triggers: ['days'] },
      ],
      next: day(5),
    });
    const second = await preview(job, { first: first.next, last: day(5), limit: 3 });
    expect([second.items, second.next]).toEqual([[{ instant: day(5), triggers: ['days', 'other days'] }], null]);
    expect((await preview(job, { triggers: ['other days'], last: day(5) })).items.map((i) => i.instant)).toEqual([
      day(1),
      day(3),
      day(5),
    ]);
    expect(await newestPosition(api.db)).toBe(before);
    expect((await api.call('GET /api/backfills')).items).toEqual([]);
  });

  it('a dry run leaves out instants that are not due, also by the offset, or outside of start and end', async () => {
    const hour = 3_600_000;
    const now = api.ctx.time.now();
    const start = new Date(Math.floor(now / hour) * hour - 5 * hour);
    const at = (n: number): string => new Date(start.getTime() + n * hour).toISOString();
    const range = { first: day(1), last: at(100) };
    const job = await makeDaily({}, { start: at(0), period: '1h' });
    expect((await preview(job, range)).items.map((i) => i.instant)).toEqual([0, 1, 2, 3, 4, 5].map(at));
    const late = await makeDaily({}, { start: at(0), period: '1h', offset: '2h', end: at(3) });
    expect((await preview(late, range)).items.map((i) => i.instant)).toEqual([0, 1, 2].map(at));
    const early = await makeDaily({}, { start: at(0), period: '1h', offset: '-1h' });
    expect((await preview(early, range)).items.map((i) => i.instant)).toEqual([0, 1, 2, 3, 4, 5, 6].map(at));
  });

  it('a dry run counts a million instants at once, and missing ones exactly', async () => {
    const job = await makeDaily({}, { start: '1990-01-01T00:00:00Z', period: '1m' });
    const last = new Date(Date.UTC(1990, 0, 1) + 999_999 * 60_000).toISOString();
    const all = await preview(job, { first: '1990-01-01T00:00:00Z', last, limit: 1 });
    expect([all.instants.total, all.next]).toEqual([1_000_000, '1990-01-01T00:01:00.000Z']);
    for (const minute of [0, 2, 7_000]) {
      await fire(api, job.triggers['t'], new Date(Date.UTC(1990, 0, 1) + minute * 60_000).toISOString());
    }
    const missing = await preview(job, {
      first: '1990-01-01T00:00:00Z',
      last: new Date(Date.UTC(1990, 0, 1) + 11_999 * 60_000).toISOString(),
      only: 'missing',
      limit: 2,
    });
    expect([missing.instants.total, missing.items.map((i) => i.instant)]).toEqual([
      11_997,
      ['1990-01-01T00:01:00.000Z', '1990-01-01T00:03:00.000Z'],
    ]);
  });
});

describe('rejected backfills', () => {
  it('an invalid backfill is rejected with the path of the fault', async () => {
    const job = await makeDaily();
    const fault = (path: string, words: string) => ({
      status: 400,
      problem: { faults: [{ path, message: textWith(words) }] },
    });
    await expect(ask(job, { last: day(0) })).rejects.toMatchObject(fault('body.last', 'before first'));
    await expect(ask(job, { triggers: ['t', 'x'] })).rejects.toMatchObject(fault('body.triggers[1]', 'no trigger x'));
    await expect(ask(job, { first: day(-9), last: day(0) })).rejects.toMatchObject(fault('body.first', 'no trigger'));
    const dense = await makeDaily({}, { start: '1990-01-01T00:00:00Z', period: '1s' });
    const years = { first: '1990-01-01T00:00:00Z', last: '2000-01-01T00:00:00Z' };
    for (const dry_run of [true, false]) {
      await expect(ask(dense, { ...years, dry_run })).rejects.toMatchObject(fault('body.last', '1000000'));
    }
    await expect(ask({ ...job, id: newId() }, {})).rejects.toEqual(refusal(404));
    await expect(look(newId())).rejects.toEqual(refusal(404));
    await expect(cancel(newId())).rejects.toEqual(refusal(404));
    expect((await api.call('GET /api/backfills')).items).toEqual([]);
  });

  it('a backfill is rejected if the overlap rule would drop its instants', async () => {
    const job = await makeJob(api, {
      triggers: [daily],
      tasks: [{ name: 'a', depends: ['trigger/t'] }],
      max_active_instants: 1,
      overlap: 'skip',
    });
    await expect(ask(job, { priority: 'normal' })).rejects.toMatchObject({ status: 409, message: textWith('overlap') });
    expect((await begin(job)).priority).toBe('backfill');
  });
});

describe('names of backfills', () => {
  it('concurrent requests for a name get the same backfill, and another range is a conflict', async () => {
    const job = await makeDaily();
    const body = JSON.stringify({ first: day(1), last: day(3), name: 'january' });
    const path = `/api/jobs/${job.id}/backfill`;
    const answers = await Promise.all(
      Array.from({ length: 5 }, () => api.fetch('POST', path, { body, caller: keyOf('operator') })),
    );
    expect(answers.filter((answer) => answer.status === 201)).toHaveLength(1);
    expect(answers.filter((answer) => answer.status === 200)).toHaveLength(4);
    const ids = await Promise.all(answers.map(async (answer) => ((await answer.json()) as { id: string }).id));
    expect(new Set(ids).size).toBe(1);
    expect((await begin(job, { name: 'january', triggers: ['t'] })).id).toBe(ids[0]);
    await expect(ask(job, { name: 'january', last: day(4) })).rejects.toMatchObject({
      status: 409,
      message: textWith('january'),
    });
    expect((await begin(await makeDaily(), { name: 'january' })).id).not.toBe(ids[0]);
    expect((await begin(job)).id).not.toBe(ids[0]);
  });
});
