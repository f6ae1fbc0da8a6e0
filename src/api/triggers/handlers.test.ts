import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { refusal } from '../../../test/harness/expected.ts';
import { fire, makeJob } from '../../../test/harness/runs.ts';
import { keyOf, makeTenantApi, type TenantApi } from '../../../test/harness/tenant-api.ts';
import { newId } from '../../kernel/id.ts';
import { sql } from '../../kernel/sql.ts';

let api: TenantApi;
beforeAll(async () => {
  api = await makeTenantApi();
  // at noon, so that no day ends during the test
  api.advance(today + dayMs / 2 - Date.now());
});
afterAll(() => api.close());

const dayMs = 86_400_000;
/** Midnight in UTC, some days from today. */
const today = (Math.floor(Date.now() / dayMs) + 1) * dayMs;
const midnight = (n: number): string => new Date(today + n * dayMs).toISOString();
const tasks = [{ name: 'a', depends: ['trigger/t'] }];

describe('previews', () => {
  const preview = (id: string | undefined, query: object = {}) =>
    api.call('GET /api/triggers/{id}/preview', { params: { id: id ?? '' }, query });

  it('a preview lists the next firings with due and local times, a page at a time', async () => {
    const triggers = [
      { name: 't', start: '2030-03-29T00:00:00Z', cron: '30 2 * * *', timezone: 'Europe/Berlin', offset: '10m' },
    ];
    const job = await makeJob(api, { project: 'previews', triggers, tasks });
    const first = await preview(job.triggers['t'], { count: 3 });
    expect(first).toMatchObject({ trigger_name: 't', job_id: job.id, paused: false, timezone: 'Europe/Berlin' });
    expect(first.items).toEqual([
      {
        instant: '2030-03-29T00:00:00.000Z',
        due: '2030-03-29T00:10:00.000Z',
        local: '2030-03-29T01:00:00+01:00[Europe/Berlin]',
      },
      {
        instant: '2030-03-29T01:30:00.000Z',
        due: '2030-03-29T01:40:00.000Z',
        local: '2030-03-29T02:30:00+01:00[Europe/Berlin]',
      },
      {
        instant: '2030-03-30T01:30:00.000Z',
        due: '2030-03-30T01:40:00.000Z',
        local: '2030-03-30T02:30:00+01:00[Europe/Berlin]',
      },
    ]);
    const second = await preview(job.triggers['t'], { count: 2, after: first.next ?? '' });
    expect(second.items.map(({ local }) => local)).toEqual([
      '2030-03-31T03:00:00+02:00[Europe/Berlin]',
      '2030-04-01T02:30:00+02:00[Europe/Berlin]',
    ]);
  });

  it('a preview begins with the next ten firings, and ends with the last one', async () => {
    const triggers = [{ name: 't', start: midnight(-3), end: midnight(4), period: '6h' }];
    const job = await makeJob(api, { project: 'previews', name: 'ending', triggers, tasks });
    await fire(api, job.triggers['t'], midnight(-3));
    const { items, next } = await preview(job.triggers['t']);
    expect(items).toHaveLength(10);
    expect(items[0]?.instant).toBe(new Date(today + 0.75 * dayMs).toISOString());
    const rest = await preview(job.triggers['t'], { count: 1000, after: next ?? '' });
    expect(rest.items.at(-1)?.instant).toBe(new Date(today + 3.75 * dayMs).toISOString());
    expect(rest.next).toBeNull();
  });

  it('a preview of a paused job says so, and lists the firings as if it were unpaused', async () => {
    const triggers = [{ name: 't', start: midnight(5), period: '1d' }];
    const job = await makeJob(api, { project: 'previews', name: 'paused', paused: true, triggers, tasks });
    expect(await preview(job.triggers['t'], { count: 1 })).toMatchObject({
      paused: true,
      items: [{ instant: midnight(5) }],
      next: midnight(5),
    });
  });

  it('an unknown trigger is not found, and a count above a thousand is rejected', async () => {
    await expect(preview(newId())).rejects.toEqual(refusal(404));
    await expect(preview(newId(), { count: 1001 })).rejects.toEqual(refusal(400));
    const viewer = api.as(keyOf('publisher'));
    await expect(viewer('GET /api/triggers/{id}/preview', { params: { id: newId() } })).rejects.toEqual(refusal(403));
  });
});

describe('next firing of a job', () => {
  const next = async (id: string) => (await api.call('GET /api/jobs/{id}', { params: { id } })).next_firing;

  it('a job has the firing of its trigger that is due first, and none if it is paused or has ended', async () => {
    const triggers = [
      { name: 'a', start: midnight(9), period: '1d' },
      { name: 'b', start: midnight(10), period: '1d', offset: '-36h' },
      { name: 'over', start: midnight(-9), end: midnight(-8), period: '1d' },
    ];
    const job = await makeJob(api, { project: 'nexts', triggers, tasks: [{ name: 'x' }] });
    const due = new Date(today + 8.5 * dayMs).toISOString();
    const trigger_id = job.triggers['b'];
    expect(await next(job.id)).toEqual({ trigger_id, trigger_name: 'b', instant: midnight(10), due });
    await api.call('PUT /api/jobs/{id}/paused', { params: { id: job.id }, body: { paused: true } });
    expect(await next(job.id)).toBeNull();
    const bare = await makeJob(api, { project: 'nexts', name: 'bare', tasks: [{ name: 'x' }] });
    expect(await next(bare.id)).toBeNull();
  });
});

describe('forecast of applying a document', () => {
  const document = (name: string, trigger: object) => ({
    project: 'outlooks',
    name,
    description: '',
    triggers: [{ name: 't', ...trigger }],
    tasks,
  });
  async function dryRun(body: object, after?: string) {
    const request = { body: JSON.stringify(body), query: { dry_run: 'true', after } } as const;
    const { outlook } = await api.call('PUT /api/jobs', request);
    const [trigger] = outlook?.triggers ?? [];
    if (outlook === undefined || trigger === undefined) throw new Error('no forecast');
    return { paused: outlook.paused, ...trigger };
  }
  const daily = { start: midnight(-9), period: '1d' };
  beforeAll(() => api.call('POST /api/projects', { body: { name: 'outlooks' } }));

  it('a dry run of a new job lists instants that are caught up, skipped, and next', async () => {
    expect(await dryRun(document('new', daily))).toMatchObject({
      paused: false,
      fires: [],
      caught_up: { total: 10, first: [midnight(-9), midnight(-8)].concat(arrayTo(-7, 0)), last: midnight(0) },
      skipped: { total: 0, first: null, last: null },
      under_way: 0,
      next: [1, 2, 3, 4, 5].map((n) => ({ instant: midnight(n), due: midnight(n) })),
    });
    expect(await dryRun(document('new', { ...daily, catchup: 'none' }))).toMatchObject({
      caught_up: { total: 0, first: [], last: null },
      skipped: { total: 10, first: midnight(-9), last: midnight(0) },
    });
    expect(await dryRun(document('new', { ...daily, catchup: 'last' }))).toMatchObject({
      fires: [midnight(0)],
      caught_up: { total: 0 },
      skipped: { total: 9, first: midnight(-9), last: midnight(-1) },
    });
    expect(await dryRun(document('new', { ...daily, catchup_window: '3d' }))).toMatchObject({
      caught_up: { total: 3, last: midnight(0) },
      skipped: { total: 7, last: midnight(-3) },
    });
    expect(await dryRun({ ...document('new', daily), paused: true })).toMatchObject({ paused: true });
  });

  const arrayTo = (from: number, to: number): string[] =>
    Array.from({ length: to - from + 1 }, (_, i) => midnight(from + i));

  it('a dry run of millions of instants gives their number, the first hundred and the last, at once', async () => {
    const began = performance.now();
    const { caught_up } = await dryRun(document('long', { start: '1990-01-01T00:00:00Z', cron: '* * * * * *' }));
    expect(performance.now() - began).toBeLessThan(3_000);
    expect(caught_up.total).toBeGreaterThan(1_000_000_000);
    expect(caught_up.first).toHaveLength(100);
    expect(caught_up.first[99]).toBe('1990-01-01T00:01:39.000Z');
    expect(Math.abs(Date.parse(caught_up.last ?? '') - api.ctx.time.now())).toBeLessThan(60_000);
  });

  it('a dry run lists the next hundred instants after a given one, and the number left', async () => {
    const body = document('paged', { start: midnight(-249), period: '1d' });
    const pages: string[][] = [];
    for (let after: string | undefined; ; after = pages.at(-1)?.at(-1)) {
      const { caught_up: page } = await dryRun(body, after);
      pages.push(page.first);
      expect(page).toMatchObject({ total: 250, more: 250 - pages.flat().length, last: midnight(0) });
      if (page.more === 0) break;
    }
    expect(pages.map((page) => page.length)).toEqual([100, 100, 50]);
    expect(pages.flat()).toEqual(arrayTo(-249, 0));
    expect((await dryRun(body, midnight(9))).caught_up).toMatchObject({ total: 250, first: [], more: 0 });
  });

  it('a dry run of an existing job lists only unhandled instants of the new schedule', async () => {
    const job = await makeJob(api, document('edited', daily));
    for (const instant of arrayTo(-9, 0)) await fire(api, job.triggers['t'], instant);
    expect(await dryRun(document('edited', daily))).toMatchObject({ caught_up: { total: 0 }, skipped: { total: 0 } });
    expect(await dryRun(document('edited', { ...daily, start: midnight(-12) }))).toMatchObject({
      caught_up: { total: 3, first: [midnight(-12), midnight(-11), midnight(-10)], more: 0, last: midnight(-10) },
    });
    expect(await dryRun(document('edited', { ...daily, offset: '-48h' }))).toMatchObject({
      caught_up: { total: 2, first: [midnight(1), midnight(2)] },
      next: [{ instant: midnight(3), due: midnight(1) }, {}, {}, {}, {}],
    });
    expect(await dryRun(document('edited', { ...daily, end: midnight(2) }))).toMatchObject({
      next: [{ instant: midnight(1) }],
    });
  });

  it('a dry run gives the number of instants left of a running catch-up', async () => {
    const job = await makeJob(api, document('busy', daily));
    await api.db.exec(sql`
      insert into catchup (trigger_id, from_at, to_at, policy, pieces, seed)
      values (${job.triggers['t']}, ${midnight(-9)}, ${midnight(1)}, 'earliest', 1, 1)`);
    await api.db.exec(sql`
      update trigger set earliest = ${midnight(-9)}, latest = ${midnight(0)} where id = ${job.triggers['t']}`);
    expect(await dryRun(document('busy', daily))).toMatchObject({ under_way: 10, caught_up: { total: 0 } });
    expect(await dryRun(document('busy', { ...daily, end: midnight(-4) }))).toMatchObject({ under_way: 5 });
    expect(await dryRun(document('busy', { ...daily, catchup: 'none' }))).toMatchObject({ under_way: 0 });
  });

  it('a real apply returns the same forecast, based on the state before it', async () => {
    const applied = async (trigger: object) => {
      const { outlook } = await api.call('PUT /api/jobs', { body: JSON.stringify(document('real', trigger)) });
      return outlook;
    };
    const late = { start: midnight(-3), period: '1d' };
    const would = await dryRun(document('real', late));
    expect(would.caught_up.total).toBe(4);
    const { paused, ...trigger } = would;
    expect(await applied(late)).toEqual({ paused, triggers: [trigger] });
    const [row] = await api.db.rows<{ id: string }>(sql`
      select trigger.id from trigger join job on job.id = trigger.job_id where job.name = 'real'`);
    for (const instant of arrayTo(-3, 0)) await fire(api, row?.id, instant);
    expect(await applied({ ...late, start: midnight(-5) })).toMatchObject({
      triggers: [{ caught_up: { total: 2, first: [midnight(-5), midnight(-4)] } }],
    });
  });

  it('a real apply of hundreds of triggers skips the forecast', async () => {
    const triggers = Array.from({ length: 101 }, (_, i) => ({ name: `t${i}`, ...daily }));
    const body = JSON.stringify({ ...document('wide', daily), triggers, tasks: [{ name: 'a' }] });
    expect((await api.call('PUT /api/jobs', { body })).outlook).toBeUndefined();
    const dry = await api.call('PUT /api/jobs', { body, query: { dry_run: 'true' } });
    expect(dry.outlook?.triggers).toHaveLength(101);
  });

  it('a dry run changes nothing', async () => {
    await dryRun(document('never', daily));
    const made = await api.db.rows(sql`select 1 from job where name = 'never'`);
    expect(made).toEqual([]);
  });
});
