import { PassThrough } from 'node:stream';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { MillraceError } from '../../../errors.ts';
import { newId } from '../../../kernel/id.ts';
import { type LocalServer, shell, type SomeHandlers, startLocalServer } from '../../../../test/harness/cli/shell.ts';
import { type Backfill, progressOf, makeProgressPrinter } from './follow-backfill.ts';
import { makeOutput } from '../../print/output.ts';

const at = '2030-01-01T00:00:00.000Z';
const [job, id] = [newId(), newId()];
let server: LocalServer | undefined;
afterEach(async () => {
  vi.useRealTimers();
  await server?.stop();
  server = undefined;
});
const start = async (handlers: SomeHandlers): Promise<LocalServer> => {
  server = await startLocalServer(handlers);
  return server;
};

const noRuns = {
  waiting: 0,
  ready: 0,
  running: 0,
  retry: 0,
  success: 0,
  failure: 0,
  timeout: 0,
  error: 0,
  cancelled: 0,
};

function backfill(fired: number, runs: Partial<Backfill['runs']>, state: Backfill['state'] = 'running'): Backfill {
  return {
    id,
    job: { id: job, name: 'j', project: 'p' },
    name: null,
    triggers: ['t'],
    first: at,
    last: at,
    order: 'earliest',
    priority: 'backfill',
    only: 'all',
    state,
    instants: { total: 3, fired, skipped: 0 },
    created_at: at,
    ended_at: state === 'running' ? null : at,
    by: 'root',
    runs: { ...noRuns, ...runs },
    runs_complete: true,
  };
}

/** A server that returns these states of the backfill, one per request. */
function scenes(steps: readonly (Backfill | MillraceError)[]): SomeHandlers {
  let look = 0;
  return {
    'POST /api/jobs/{id}/backfill': async () => backfill(0, {}),
    'GET /api/backfills/{id}': async () => {
      const scene = steps[Math.min(look++, steps.length - 1)];
      if (scene instanceof MillraceError) throw scene;
      return scene ?? backfill(0, {});
    },
  };
}

const range = ['--first', '2030-01-01T01:00:00+01:00', '--last', '2030-01-03T00:00:00Z'];

describe('backfill --wait', () => {
  it('backfill --wait prints the progress, survives a short outage, and ends with 0 if all runs succeeded', async () => {
    const { env } = await start(
      scenes([
        backfill(1, { ready: 1 }),
        new MillraceError('database_unavailable', 'gone for a moment'),
        backfill(3, { running: 1, success: 2 }),
        backfill(3, { success: 3 }, 'done'),
      ]),
    );
    // no line is due between the first and the last, even on a slow machine
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() });
    const ran = await shell(['backfill', job, ...range, '--wait'], { env });
    expect(ran).toMatchObject({ code: 0, stdout: `${id} done\n` });
    expect(ran.stderr.split('\n').filter(Boolean)).toEqual([
      `3 instants, backfill ${id}`,
      '1 of 3 instants fired; runs so far: 0 of 1 done, 1 ready',
      'done: 3 of 3 instants fired; runs: 3 of 3 done',
    ]);
  });

  it('progress on a terminal is one line that is overwritten', async () => {
    const { env } = await start(scenes([backfill(1, { ready: 1 }), backfill(3, { success: 3 }, 'done')]));
    const { stderr } = await shell(['backfill', job, ...range, '--wait'], { env, tty: true });
    expect(stderr).toContain(
      '\r\u001b[K1 of 3 instants fired; runs so far: 0 of 1 done, 1 ready\r\u001b[Kdone: 3 of 3',
    );
  });

  it.each([
    ['failed', backfill(3, { success: 2, timeout: 1 }, 'done')],
    ['was cancelled', backfill(1, { success: 1 }, 'cancelled')],
  ])('backfill --wait ends with 1 if some of it %s', async (_, last) => {
    const { env } = await start(scenes([last]));
    const { code, stdout } = await shell(['backfill', job, ...range, '--wait', '--json'], { env });
    expect([code, JSON.parse(stdout)]).toEqual([1, last]);
  });
});

describe('the progress of a backfill', () => {
  it('progress counts runs that are done, those that failed, and the others by state', () => {
    const runs = { success: 117, failure: 1, timeout: 1, error: 1, running: 5, ready: 195 };
    const words = '3 of 3 instants fired; runs so far: 120 of 320 done (3 failed), 195 ready, 5 running';
    expect(progressOf(backfill(3, runs))).toBe(words);
    expect(progressOf({ ...backfill(3, runs), runs_complete: false })).toContain('at least 120 of 320 done');
    expect(progressOf(backfill(2, {}))).toBe('2 of 3 instants fired');
  });

  const printAll = (tty: boolean, texts: readonly [atMs: number, text: string, last?: boolean][]): string => {
    const stderr = Object.assign(new PassThrough(), { isTTY: tty, columns: 20 });
    const io = { stdin: new PassThrough(), stdout: new PassThrough(), stderr, env: {}, cwd: '/' };
    let nowMs = 0;
    const print = makeProgressPrinter({ io, out: makeOutput(io, false) }, () => nowMs);
    for (const [atMs, text, last = false] of texts) {
      nowMs = atMs;
      print(text, last);
    }
    return String(stderr.read());
  };

  it('progress without a terminal is printed at intervals, even if nothing changes', () => {
    const printed = printAll(false, [
      [0, 'a'],
      [4_999, 'b'],
      [5_000, 'c'],
      [64_999, 'c'],
      [65_000, 'c'],
      [65_001, 'd', true],
    ]);
    expect(printed).toBe('a\nc\nc\nd\n');
  });

  it('progress is truncated to the width of the terminal, except the last line', () => {
    const long = 'x'.repeat(30);
    const printed = printAll(true, [
      [0, long],
      [1, long, true],
    ]);
    expect(printed).toBe(`\r\u001b[K${'x'.repeat(18)}…\r\u001b[K${long}\n`);
  });
});

describe('backfill commands', () => {
  it('backfill sends its flags, and prints only the id', async () => {
    const sent: unknown[] = [];
    const { env } = await start({
      'POST /api/jobs/{id}/backfill': async ({ params, body }) => {
        sent.push([params.id, body]);
        return backfill(0, {});
      },
    });
    const flags = [
      '--trigger',
      'a',
      '--trigger',
      'b',
      '--order',
      'latest',
      '--missing',
      '--name',
      'n',
      '--priority',
      'low',
    ];
    expect((await shell(['backfill', job, ...range, ...flags], { env })).stdout).toBe(`${id}\n`);
    const [first, last] = [new Date(at), new Date('2030-01-03T00:00:00Z')];
    const rest = { triggers: ['a', 'b'], order: 'latest', only: 'missing', name: 'n', priority: 'low', dry_run: false };
    expect(sent).toEqual([[job, { first, last, ...rest, limit: 1000 }]]);
  });

  it('backfill --dry-run lists the instants', async () => {
    const preview = {
      dry_run: true as const,
      instants: { total: 5 },
      items: [{ instant: at, triggers: ['a', 'b'] }],
      next: at,
    };
    const { env } = await start({ 'POST /api/jobs/{id}/backfill': async () => Response.json(preview) });
    const { code, stdout, stderr } = await shell(['backfill', job, ...range, '--dry-run'], { env });
    expect([code, stdout]).toEqual([0, 'INSTANT               TRIGGERS\n2030-01-01T00:00:00Z  a, b\n']);
    expect(stderr).toBe('5 instants would fire; the list continues at 2030-01-01T00:00:00Z\n');
  });

  it('a backfill is listed, and cancelled by its id', async () => {
    const { env, calls } = await start({
      'GET /api/backfills': async () => ({ items: [backfill(1, {})], next: null }),
      'GET /api/jobs/{id}/backfills': async () => ({ items: [], next: null }),
      'GET /api/backfills/{id}': async () => backfill(1, {}),
      'POST /api/backfills/{id}/cancel': async () => backfill(1, { cancelled: 1 }, 'cancelled'),
    });
    expect((await shell(['backfills'], { env })).stdout).toMatch(
      new RegExp(`^BACKFILL.*\\n${id}  running  p/j .* 1/3 `),
    );
    expect(await shell(['backfills', job], { env })).toMatchObject({ code: 0, stdout: '', stderr: 'no backfills\n' });
    const cancelled = await shell(['backfill', 'cancel', id], { env });
    expect(cancelled.stdout).toBe('cancelled: 1 of 3 instants fired; runs: 1 of 1 done (1 cancelled)\n');
    expect(calls.at(-1)).toBe(`POST /api/backfills/${id}/cancel`);
  });
});

describe('backfill cancel', () => {
  const named = (name: string, more: Partial<Backfill> = {}) => ({ ...backfill(1, {}), name, ...more });

  it('a backfill is cancelled by name, unless two jobs have backfills of that name', async () => {
    const items = [named('january'), named('twice'), named('twice', { id: newId() })];
    const { env, calls } = await start({
      'GET /api/backfills': async () => ({ items, next: null }),
      'GET /api/backfills/{id}': async () => backfill(1, {}),
      'POST /api/backfills/{id}/cancel': async () => backfill(1, {}, 'cancelled'),
    });
    expect((await shell(['backfill', 'cancel', 'january'], { env })).code).toBe(0);
    expect(calls.at(-1)).toBe(`POST /api/backfills/${id}/cancel`);
    const twice = await shell(['backfill', 'cancel', 'twice'], { env });
    expect([twice.code, twice.stderr]).toEqual([2, expect.stringContaining('2 backfills are called twice')]);
    expect(await shell(['backfill', 'cancel', 'may'], { env })).toMatchObject({
      code: 5,
      stderr: 'error: backfill not found: may\n',
    });
  });
});

describe('pool commands', () => {
  it('a pool is set, listed and deleted', async () => {
    const pools = new Map<string, number>();
    const poolOf = (name: string) => ({ name, places: pools.get(name) ?? 0, used: 2, waiting: 3 });
    const { env } = await start({
      'GET /api/pools': async () => ({ items: [...pools.keys()].map(poolOf), next: null }),
      'PUT /api/pools/{name}': async ({ params, body }) => {
        pools.set(params.name, body.places);
        return poolOf(params.name);
      },
      'DELETE /api/pools/{name}': async ({ params }) => void pools.delete(params.name),
    });
    expect((await shell(['pool', 'list'], { env })).stderr).toContain('no pools');
    expect((await shell(['pool', 'set', 'a b', '1'], { env })).stdout).toBe('a b has 1 place\n');
    expect((await shell(['pool', 'list'], { env })).stdout).toMatch(/^POOL +PLACES +USED +WAITING\na b +1 +2 +3\n$/);
    expect((await shell(['pool', 'delete', 'a b'], { env })).stdout).toBe('a b is deleted\n');
    expect(pools.size).toBe(0);
  });
});

describe('instants', () => {
  const tasks = { ...noRuns, success: 2, failure: 1 };

  it('instants are listed with their states', async () => {
    const item = { instant: at, state: 'failure' as const, tasks, started_at: at, finished_at: null, active: true };
    const { env } = await start({ 'GET /api/jobs/{id}/instants': async () => ({ items: [item], next: null }) });
    const { stdout } = await shell(['instants', job], { env });
    expect(stdout).toMatch(/\n2030-01-01T00:00:00Z +failure +2030-01-01T00:00:00Z +- +2 success, 1 failure, active\n$/);
  });

  it('tokens are activated by filter, or only listed', async () => {
    const sent: unknown[] = [];
    const { env } = await start({
      'POST /api/jobs/{id}/activate': async ({ body }) => {
        sent.push(body);
        const items = [{ task_id: job, task: 't', instant: at, state: 'failure' as const }];
        return { dry_run: body.dry_run, tokens: 7, ...(body.dry_run ? { items } : {}) };
      },
    });
    const filter = ['activate', job, '--state', 'failure,error', '--task', 't', '--last', at];
    expect(await shell(filter, { env })).toEqual({ code: 0, stdout: '', stderr: '7 tokens activated\n' });
    const dry = await shell([...filter, '--dry-run'], { env });
    expect(dry.stdout).toMatch(/\n2030-01-01T00:00:00Z +t +failure\n$/);
    expect(dry.stderr).toBe('7 tokens would be activated; the first 1 are listed\n');
    const body = { tasks: ['t'], states: ['failure', 'error'], last: new Date(at), priority: 'backfill' };
    expect(sent).toEqual([
      { ...body, dry_run: false },
      { ...body, dry_run: true },
    ]);
  });

  it('tokens are filtered by the states of runs, and by the states in lists of instants', async () => {
    const sent: unknown[] = [];
    const { env } = await start({
      'POST /api/jobs/{id}/activate': async ({ body }) => {
        sent.push(body.states);
        return { dry_run: false, tokens: 0 };
      },
      'GET /api/runs': async ({ query }) => {
        sent.push(query.state);
        return { items: [], next: null };
      },
    });
    for (const word of ['active', 'ready']) {
      expect((await shell(['activate', job, '--state', word], { env })).code).toBe(0);
      expect((await shell(['runs', '--state', word], { env })).code).toBe(0);
    }
    expect(sent).toEqual([['active'], ['active'], ['ready'], ['active']]);
  });
});

describe('invalid command lines', () => {
  it.each([
    [['backfill', job]],
    [['backfill', job, '--first', at]],
    [['backfill', job, '--first', at, '--last', 'soon']],
    [['backfill', job, ...range, '--order', 'sideways']],
    [['pool', 'set', 'a', '-1']],
    [['pool', 'set', 'a', 'many']],
    [['activate', job]],
    [['activate', job, 't']],
    [['activate', job, 't', at, '--state', 'failure']],
    [['activate', job, '--state', 'lost']],
  ])('the command line %j ends with 2', async (argv) => {
    const { code, stdout } = await shell(argv, { env: { MILLRACE_URL: 'http://127.0.0.1:1' } });
    expect([code, stdout]).toEqual([2, '']);
  });
});
