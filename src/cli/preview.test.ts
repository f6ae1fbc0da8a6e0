import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { newId } from '../kernel/id.ts';
import { type LocalServer, type Ran, shell, startLocalServer } from './fixture.ts';
import { jobViews, makeWorld } from './fixture-world.ts';
import { outlookLines } from './outlook.ts';

const world = makeWorld(['p']);
const day = (n: number): string => `2030-01-0${n}T00:00:00.000Z`;
let paused = false;
let asked: object[] = [];
let server: LocalServer;

const [nightly, hourly] = [newId(), newId()];
const trigger = (trigger_id: string, trigger_name: string) => ({
  trigger_id,
  trigger_name,
  start_datetime: day(1),
  end_datetime: null,
  earliest_trigger_datetime: null,
  latest_trigger_datetime: null,
  period: 86_400,
  cron: null,
  timezone: null,
  trigger_offset: null,
  catchup: 'none',
});

beforeEach(async () => {
  paused = false;
  asked = [];
  server = await startLocalServer({
    ...world.handlers,
    ...jobViews(world),
    'GET /api/jobs/{id}/triggers': async () => [trigger(nightly, 'nightly'), trigger(hourly, 'hourly')],
    'GET /api/triggers/{id}/preview': async ({ params: { id }, query }) => {
      asked.push(query);
      const days = id === nightly ? [1, 3, 5] : [2, 4];
      const items = days.map((n) => ({ instant: day(n), due: day(n), local: `${day(n).slice(0, 19)}+00:00[UTC]` }));
      const about = { trigger_id: id, trigger_name: id === nightly ? 'nightly' : 'hourly', job_id: newId() };
      return { ...about, paused, timezone: null, items, next: null };
    },
  });
  await cli(['apply', '-f', '-'], 'project: p\nname: j\ndescription: d\ntasks: [{name: t}]\n');
});
afterEach(() => server.stop());

const cli = (argv: string[], stdin?: string): Promise<Ran> =>
  shell(argv, { env: server.env, ...(stdin === undefined ? {} : { stdin }) });

describe('preview', () => {
  it('shows the firings of all triggers of a job in the order in which they are due', async () => {
    const { code, stdout, stderr } = await cli(['preview', 'p/j', '--count', '4']);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const [head, ...lines] = stdout.trimEnd().split('\n');
    expect(head).toMatch(/^TRIGGER +INSTANT +DUE +LOCAL$/);
    expect(lines.map((line) => line.split(/ +/))).toEqual([
      ['nightly', '2030-01-01T00:00:00Z', '2030-01-01T00:00:00Z', '2030-01-01T00:00:00+00:00[UTC]'],
      ['hourly', '2030-01-02T00:00:00Z', '2030-01-02T00:00:00Z', '2030-01-02T00:00:00+00:00[UTC]'],
      ['nightly', '2030-01-03T00:00:00Z', '2030-01-03T00:00:00Z', '2030-01-03T00:00:00+00:00[UTC]'],
      ['hourly', '2030-01-04T00:00:00Z', '2030-01-04T00:00:00Z', '2030-01-04T00:00:00+00:00[UTC]'],
    ]);
    expect(asked).toMatchObject([{ count: 4 }, { count: 4 }]);
  });

  it('shows those of one trigger after an instant, as JSON, and says when the job is paused', async () => {
    paused = true;
    const { stdout, stderr } = await cli([
      'preview',
      'p/j',
      'hourly',
      '--after',
      '2030-01-01T01:00:00+01:00',
      '--json',
    ]);
    expect(JSON.parse(stdout)).toMatchObject({ paused: true, items: [{ trigger: 'hourly' }, { trigger: 'hourly' }] });
    expect(stderr).toContain('the job is paused');
    expect(asked).toMatchObject([{ count: 10, after: new Date(day(1)) }]);
  });

  it('refuses a trigger that the job does not have, an instant that is none, and a count of thousands', async () => {
    expect((await cli(['preview', 'p/j', 'weekly'])).stderr).toContain('its triggers: nightly, hourly');
    expect((await cli(['preview', 'p/j', '--after', 'tomorrow'])).code).toBe(2);
    expect((await cli(['preview', 'p/j', '--count', '1001'])).code).toBe(2);
  });
});

it('a job is shown with its next firing', async () => {
  expect((await cli(['job', 'p/j'])).stdout).toMatch(/^next: +2030-01-01T00:00:00Z by daily$/m);
  await cli(['pause', 'p/j']);
  expect((await cli(['job', 'p/j'])).stdout).toMatch(/^next: +-$/m);
});

describe('what a dry run says of a trigger', () => {
  const nothing = {
    name: 'night',
    fires: [],
    caught_up: { total: 0, first: [], last: null },
    skipped: { total: 0, first: null, last: null },
    under_way: 0,
    next: [],
  };
  const lines = (more: object, isPaused = false): string[] =>
    outlookLines({ paused: isPaused, triggers: [{ ...nothing, ...more }] });

  it('is what comes next, or that nothing does', () => {
    expect(lines({})).toEqual(['    trigger night', '      next:        nothing more']);
    const next = [1, 2].map((n) => ({ instant: day(n), due: day(n), local: '' }));
    expect(lines({ next }, true)).toEqual([
      '    trigger night (paused: nothing fires before it is unpaused)',
      '      next:        2030-01-01T00:00:00Z, 2030-01-02T00:00:00Z',
    ]);
  });

  it('is what fires now, is caught up, is under way, and is skipped', () => {
    const first = [1, 2, 3, 4].map(day);
    const told = lines({
      fires: [day(9)],
      caught_up: { total: 151, first, last: day(8) },
      skipped: { total: 2, first: day(1), last: day(2) },
      under_way: 7,
    });
    expect(told.slice(1, -1)).toEqual([
      '      fires now:   2030-01-09T00:00:00Z',
      '      catches up:  151: 2030-01-01T00:00:00Z, 2030-01-02T00:00:00Z, 2030-01-03T00:00:00Z … 2030-01-08T00:00:00Z',
      '      under way:   7 still to be caught up from before',
      '      skips:       2: 2030-01-01T00:00:00Z … 2030-01-02T00:00:00Z',
    ]);
    const few = (total: number): string | undefined =>
      lines({ caught_up: { total, first: first.slice(0, total), last: day(total) } })[1];
    expect(few(2)).toBe('      catches up:  2: 2030-01-01T00:00:00Z, 2030-01-02T00:00:00Z');
    expect(few(4)).toMatch(/03T00:00:00Z, 2030-01-04T00:00:00Z$/);
  });
});
