import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Ran, shell } from '../../../../test/harness/cli/shell.ts';
import { startTenantServer, type TenantServer } from '../../../../test/harness/cli/tenant-server.ts';
import { outlookLines } from './forecast.ts';

const day = (n: number): string => `2130-01-0${n}T00:00:00.000Z`;
const trigger = (name: string, n: number): string => `{name: ${name}, start: ${day(n)}, period: 2d}`;
const document = (name: string, ...triggers: string[]): string =>
  `project: p\nname: ${name}\ntriggers: [${triggers.join(', ')}]\ntasks: [{name: t}]\n`;

let server: TenantServer;
beforeAll(async () => {
  server = await startTenantServer(['p']);
  await cli(['apply', '-f', '-'], document('j', trigger('nightly', 1), trigger('hourly', 2)));
});
afterAll(() => server.stop());

const cli = (argv: string[], stdin?: string): Promise<Ran> =>
  shell(argv, { env: server.env, ...(stdin === undefined ? {} : { stdin }) });

describe('preview', () => {
  it('preview lists the firings of all triggers of a job by due time', async () => {
    const { code, stdout, stderr } = await cli(['preview', 'p/j', '--count', '4']);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const [head, ...lines] = stdout.trimEnd().split('\n');
    expect(head).toMatch(/^TRIGGER +INSTANT +DUE +LOCAL$/);
    expect(lines.map((line) => line.split(/ +/))).toEqual([
      ['nightly', '2130-01-01T00:00:00Z', '2130-01-01T00:00:00Z', '2130-01-01T00:00:00+00:00[UTC]'],
      ['hourly', '2130-01-02T00:00:00Z', '2130-01-02T00:00:00Z', '2130-01-02T00:00:00+00:00[UTC]'],
      ['nightly', '2130-01-03T00:00:00Z', '2130-01-03T00:00:00Z', '2130-01-03T00:00:00+00:00[UTC]'],
      ['hourly', '2130-01-04T00:00:00Z', '2130-01-04T00:00:00Z', '2130-01-04T00:00:00+00:00[UTC]'],
    ]);
  });

  it('preview lists firings of one trigger after an instant, as JSON, and says whether the job is paused', async () => {
    await cli(['pause', 'p/j']);
    const { stdout, stderr } = await cli([
      'preview',
      'p/j',
      'hourly',
      '--after',
      '2130-01-02T01:00:00+01:00',
      '--json',
    ]);
    await cli(['unpause', 'p/j']);
    const { paused, items } = JSON.parse(stdout) as { paused: boolean; items: { trigger: string; instant: string }[] };
    expect([paused, items.length, items[0]]).toMatchObject([true, 10, { trigger: 'hourly', instant: day(4) }]);
    expect(stderr).toContain('the job is paused');
  });

  it('preview rejects an unknown trigger, an invalid instant, and a count above 1000', async () => {
    expect((await cli(['preview', 'p/j', 'weekly'])).stderr).toContain('its triggers: hourly, nightly');
    expect((await cli(['preview', 'p/j', '--after', 'tomorrow'])).code).toBe(2);
    expect((await cli(['preview', 'p/j', '--count', '1001'])).code).toBe(2);
  });
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
      '      next due:    2130-01-01T00:00:00Z  2130-01-02T00:00:00Z',
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
      '      fires now:   2130-01-09T00:00:00Z',
      '      catches up:  2 instants',
      '                   2130-01-01T00:00:00Z  2130-01-02T00:00:00Z',
      '      under way:   7 instants of an earlier catch-up are left',
      '      skips:       2: 2130-01-01T00:00:00Z … 2130-01-02T00:00:00Z',
    ]);
  });

  const hour = (n: number): string => new Date(Date.UTC(2130, 0, 1, n)).toISOString();
  const instants = (text: string): string[] => text.match(/2130-\S+Z/g) ?? [];

  it('the forecast lists all returned instants to be caught up, in rows as wide as the terminal', () => {
    const first = Array.from({ length: 100 }, (_, n) => hour(n));
    const caught_up = { total: 151, first, more: 51, last: hour(150) };
    const rows = outlookLines({ paused: false, triggers: [{ ...nothing, caught_up }] }, 80);
    const [, head, ...listed] = rows.slice(0, -3);
    expect(head).toBe('      catches up:  151 instants');
    expect(listed).toHaveLength(50);
    expect(listed[49]).toBe('                   2130-01-05T02:00:00Z  2130-01-05T03:00:00Z');
    expect(instants(listed.join(' ')).map((text) => new Date(text).toISOString())).toEqual(first);
    expect(rows.slice(-3)).toEqual([
      '                   … and 51 more, the last 2130-01-07T06:00:00Z',
      '                   (--after 2130-01-05T03:00:00Z lists the next ones)',
      '      next due:    nothing more',
    ]);
    expect(outlookLines({ paused: false, triggers: [{ ...nothing, caught_up }] }, 10)).toHaveLength(105);
  });

  /** Was due every hour for 18 hours, until 15 h ago. */
  function lateTrigger(): { readonly text: string; readonly first: (n: number) => string } {
    const start = Math.floor(Date.now() / 3_600_000) * 3_600_000 - 33 * 3_600_000;
    const at = (n: number): string => new Date(start + n * 3_600_000).toISOString().replace('.000', '');
    return { text: `{name: late, start: ${at(0)}, end: ${at(18)}, period: 1h}`, first: at };
  }

  it('a real apply prints one line for each trigger that fires or catches up now', async () => {
    const run = async (name: string, more = ''): Promise<string> =>
      (await cli(['apply', '-f', '-'], document(name, trigger('next', 1), lateTrigger().text) + more)).stdout;
    expect(await run('real')).toBe('+ p/real created (version 1)\n    trigger late: catches up 18 instants\n');
    expect(await run('held', 'paused: true\n')).toBe('+ p/held created (version 1)\n');
  });

  it('apply --dry-run prints the forecast, and continues it after an instant', async () => {
    const { text, first } = lateTrigger();
    const run = (...argv: string[]): Promise<Ran> => cli(['apply', '-f', '-', ...argv], document('dry', text));
    const { stdout } = await run('--dry-run');
    expect(stdout).toContain(`18 instants\n                   ${first(0)}  ${first(1)}  ${first(2)}\n`);
    const after = (await run('--dry-run', '--after', first(3))).stdout;
    expect(after).toContain(`18 instants\n                   ${first(4)}  ${first(5)}  ${first(6)}\n`);
    expect(await run('--after', first(3))).toMatchObject({ code: 2 });
    expect(await run('--dry-run', '--after', 'noon')).toMatchObject({ code: 2 });
  });
});
