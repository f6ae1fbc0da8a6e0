import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { newId } from '../../../kernel/id.ts';
import { type LocalServer, type Ran, shell, startLocalServer } from '../../../../test/harness/cli/shell.ts';
import { jobViews, makeWorld } from '../../../../test/harness/cli/world.ts';
import { outlookLines } from './forecast.ts';

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
  it('preview lists the firings of all triggers of a job by due time', async () => {
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

  it('preview lists firings of one trigger after an instant, as JSON, and says whether the job is paused', async () => {
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

  it('preview rejects an unknown trigger, an invalid instant, and a count above 1000', async () => {
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

describe('forecast of a trigger in a dry run', () => {
  const nothing = {
    name: 'night',
    fires: [],
    caught_up: { total: 0, first: [], more: 0, last: null },
    skipped: { total: 0, first: null, last: null },
    under_way: 0,
    next: [],
  };
  const lines = (more: object, isPaused = false): string[] =>
    outlookLines({ paused: isPaused, triggers: [{ ...nothing, ...more }] });

  it('the forecast lists the next firings, or says that there are none', () => {
    expect(lines({})).toEqual(['    trigger night', '      next due:    nothing more']);
    const next = [1, 2].map((n) => ({ instant: day(n), due: day(n), local: '' }));
    expect(lines({ next }, true)).toEqual([
      '    trigger night (paused: nothing fires before it is unpaused)',
      '      next due:    2030-01-01T00:00:00Z  2030-01-02T00:00:00Z',
    ]);
  });

  it('the forecast lists instants that fire now, are caught up, are under way, or are skipped', () => {
    const printed = lines({
      fires: [day(9)],
      caught_up: { total: 2, first: [day(1), day(2)], more: 0, last: day(2) },
      skipped: { total: 2, first: day(1), last: day(2) },
      under_way: 7,
    });
    expect(printed.slice(1, -1)).toEqual([
      '      fires now:   2030-01-09T00:00:00Z',
      '      catches up:  2 instants',
      '                   2030-01-01T00:00:00Z  2030-01-02T00:00:00Z',
      '      under way:   7 instants of an earlier catch-up are left',
      '      skips:       2: 2030-01-01T00:00:00Z … 2030-01-02T00:00:00Z',
    ]);
  });

  const hour = (n: number): string => new Date(Date.UTC(2030, 0, 1, n)).toISOString();
  const instants = (text: string): string[] => text.match(/2030-\S+Z/g) ?? [];

  it('the forecast lists all returned instants to be caught up, in rows as wide as the terminal', () => {
    const first = Array.from({ length: 100 }, (_, n) => hour(n));
    const caught_up = { total: 151, first, more: 51, last: hour(150) };
    const rows = outlookLines({ paused: false, triggers: [{ ...nothing, caught_up }] }, 80);
    const [, head, ...listed] = rows.slice(0, -3);
    expect(head).toBe('      catches up:  151 instants');
    expect(listed).toHaveLength(50);
    expect(listed[49]).toBe('                   2030-01-05T02:00:00Z  2030-01-05T03:00:00Z');
    expect(instants(listed.join(' ')).map((text) => new Date(text).toISOString())).toEqual(first);
    expect(rows.slice(-3)).toEqual([
      '                   … and 51 more, the last 2030-01-07T06:00:00Z',
      '                   (--after 2030-01-05T03:00:00Z lists the next ones)',
      '      next due:    nothing more',
    ]);
    expect(outlookLines({ paused: false, triggers: [{ ...nothing, caught_up }] }, 10)).toHaveLength(105);
  });

  it('a real apply prints one line for each trigger that fires or catches up now', async () => {
    const put = world.handlers['PUT /api/jobs'];
    let isPaused = false;
    const real = await startLocalServer({
      ...world.handlers,
      'PUT /api/jobs': async (input, ...more) => {
        const answer = (await put?.(input, ...more)) as Response;
        const caught_up = { total: 18, first: [day(1)], more: 17, last: day(9) };
        const late = { ...nothing, name: 'late', fires: [day(9)] };
        const triggers = [nothing, { ...late, caught_up }, late];
        return Response.json({ ...((await answer.json()) as object), outlook: { paused: isPaused, triggers } });
      },
    });
    try {
      const apply = async (name: string) =>
        (await shell(['apply', '-f', '-'], { env: real.env, stdin: `project: p\nname: ${name}\ntasks: [{name: t}]\n` }))
          .stdout;
      expect(await apply('real')).toBe(
        '+ p/real created (version 1)\n' +
          '    trigger late: catches up 18 instants, fires 1 now\n    trigger late: fires 1 now\n',
      );
      isPaused = true;
      expect(await apply('held')).toBe('+ p/held created (version 1)\n');
    } finally {
      await real.stop();
    }
  });

  it('apply --dry-run prints the forecast, and continues it after an instant', async () => {
    const put = world.handlers['PUT /api/jobs'];
    const all = Array.from({ length: 5 }, (_, n) => hour(n));
    const dry = await startLocalServer({
      ...world.handlers,
      'PUT /api/jobs': async (input, ...more) => {
        const answer = (await put?.(input, ...more)) as Response;
        const first = all.filter((each) => Date.parse(each) > (input.query.after?.getTime() ?? 0)).slice(0, 2);
        const left = all.length - all.indexOf(first.at(-1) ?? '') - 1;
        const caught_up = { total: 5, first, more: left, last: hour(4) };
        const outlook = { paused: false, triggers: [{ ...nothing, caught_up }] };
        return Response.json({ ...((await answer.json()) as object), outlook });
      },
    });
    try {
      const runApply = async (...argv: string[]): Promise<Ran> =>
        shell(['apply', '-f', '-', ...argv], {
          env: dry.env,
          stdin: 'project: p\nname: dry\ndescription: d\ntasks: [{name: t}]\n',
        });
      const { stdout } = await runApply('--dry-run');
      expect(stdout).toContain('5 instants\n                   2030-01-01T00:00:00Z  2030-01-01T01:00:00Z\n');
      expect(stdout).toContain('… and 3 more, the last 2030-01-01T04:00:00Z');
      const after = (await runApply('--dry-run', '--after', '2030-01-01T01:00:00Z')).stdout;
      expect(after).toContain('5 instants\n                   2030-01-01T02:00:00Z  2030-01-01T03:00:00Z\n');
      expect(after).toContain('… and 1 more');
      expect(await runApply('--after', '2030-01-01T01:00:00Z')).toMatchObject({ code: 2 });
      expect(await runApply('--dry-run', '--after', 'noon')).toMatchObject({ code: 2 });
    } finally {
      await dry.stop();
    }
  });
});
