import { afterEach, describe, expect, it } from 'vitest';
import { MillraceError } from '../../../errors.ts';
import { newId } from '../../../kernel/id.ts';
import { type LocalServer, shell, type SomeHandlers, startLocalServer } from '../../../../test/harness/cli/shell.ts';
import type { RunItem } from '../../session/pages.ts';

const at = '2030-01-01T00:00:00.000Z';
const job = newId();
let server: LocalServer | undefined;
afterEach(async () => {
  await server?.stop();
  server = undefined;
});
const start = async (handlers: SomeHandlers, port?: number): Promise<LocalServer> => {
  server = await startLocalServer(handlers, { port });
  return server;
};

function run(task: string, state: RunItem['state'], more: Partial<RunItem> = {}): RunItem {
  return {
    id: newId(),
    state,
    job: { id: job, name: 'j', project: 'p' },
    task: { id: job, name: task },
    instant: at,
    version: 1,
    attempt: 1,
    priority: 'high',
    lease: 1,
    worker_id: null,
    cause: null,
    queued_at: at,
    started_at: null,
    finished_at: null,
    reason: null,
    exit_code: null,
    ...more,
  };
}

/** A server that returns these scenes, one per request: the runs of a job (newest first) and the state of its token. */
function scenes(
  steps: readonly (readonly [runs: RunItem[], token: RunItem['state'] | 'retry', count?: number])[],
): SomeHandlers {
  let look = 0;
  return {
    'POST /api/jobs/{id}/run': async () => ({ instant: at, runs: [steps[0]?.[0].at(-1)?.id ?? ''] }),
    'GET /api/runs': async () => ({ items: steps[Math.min(look, steps.length - 1)]?.[0] ?? [], next: null }),
    'GET /api/jobs/{id}/tokens/{instant}': async () => {
      const [, state = 'waiting', count = 0] = steps[Math.min(look++, steps.length - 1)] ?? [];
      return [{ task_id: job, task_name: 't', trigger_datetime: at, state, count, threshold: 1 }];
    },
  };
}

describe('run --wait', () => {
  it('run --wait waits for the runs that follow, and succeeds if all did', async () => {
    const first = run('a', 'running');
    const done: RunItem = { ...first, state: 'success' };
    const second = run('b', 'success', { task: { id: newId(), name: 'b' } });
    const { env } = await start(
      scenes([
        [[first], 'running'],
        [[done], 'waiting', 1],
        [[second, done], 'success'],
      ]),
    );
    const ran = await shell(['run', job, '--wait', '--json', '--param', 'n=1'], { env });
    expect(ran.code).toBe(0);
    expect(JSON.parse(ran.stdout)).toMatchObject({
      outcome: 'success',
      runs: [{ state: 'success' }, { task: { name: 'b' } }],
    });
    expect(ran.stderr).toContain('a running');
  });

  it('run --wait waits for a retry, and the last attempt decides', async () => {
    const failed = run('a', 'failure', { reason: 'exit code 1' });
    const second = run('a', 'success', { attempt: 2 });
    const { env } = await start(
      scenes([
        [[failed], 'retry'],
        [[second, failed], 'success'],
      ]),
    );
    const ran = await shell(['run', job, '--wait'], { env });
    expect(ran.code).toBe(0);
    expect(ran.stderr).toContain('a failure: exit code 1');
    expect(ran.stderr).toContain('a success (attempt 2)');
  });

  it('run --wait ends with 1 if a run failed, and ignores older runs of the instant', async () => {
    const old = run('x', 'error', { queued_at: '2029-12-31T00:00:00.000Z', task: { id: newId(), name: 'x' } });
    const failed = run('a', 'failure');
    const handlers = scenes([[[failed, old], 'failure']]);
    const { env } = await start({
      ...handlers,
      'POST /api/jobs/{id}/run': async () => ({ instant: at, runs: [failed.id] }),
    });
    const ran = await shell(['run', job, '--wait', '--json'], { env });
    expect(ran.code).toBe(1);
    expect(JSON.parse(ran.stdout)).toMatchObject({ outcome: 'failure', runs: [{ id: failed.id }] });
  });

  it('run sends its flags', async () => {
    const bodies: unknown[] = [];
    const { env } = await start({
      'POST /api/jobs/{id}/run': async ({ body }) => {
        bodies.push(body);
        throw new MillraceError('conflict', 'the job is paused');
      },
    });
    const argv = ['run', job, '--param', 'a=1', '--param', 'b=x', '--instant', at, '--priority', 'low'];
    expect(await shell(argv, { env })).toMatchObject({ code: 1, stderr: 'error: the job is paused\n' });
    expect(bodies).toEqual([{ params: { a: 1, b: 'x' }, instant: new Date(at), priority: 'low' }]);
  });
});

describe('runs', () => {
  it('runs are filtered, and read page by page', async () => {
    const pages = [run('a', 'failure'), run('b', 'error'), run('c', 'error')];
    const { env, calls } = await start({
      'GET /api/runs': async ({ query }) => {
        const from = pages.findIndex(({ id }) => id === query.cursor) + 1;
        const items = pages.slice(from, from + 1);
        return { items, next: items[0]?.id ?? null };
      },
    });
    const ran = await shell(['runs', '--job', job, '--state', 'failure,error', '--limit', '2'], { env });
    expect(ran.stdout.split('\n').map((line) => line.split(/ +/)[1])).toEqual(['STATE', 'failure', 'error', undefined]);
    expect(calls[0]).toBe(`GET /api/runs?job=${job}&state=failure%2Cerror&limit=2`);
  });

  it('runs of a task by name need --job', async () => {
    const { env } = await start({});
    expect((await shell(['runs', '--task', 't'], { env })).code).toBe(2);
  });
});

describe('run --param', () => {
  it.each(['x=1e400', 'x=12345678901234567890', `x=${'x'.repeat(262_144)}`])(
    'run rejects a parameter that cannot be stored exactly: %.24s',
    async (param) => {
      const { url } = await start({});
      const { code, stderr } = await shell(['run', 'p/j', '--url', url, '--param', param]);
      expect(code).toBe(2);
      expect(stderr).toMatch(/params (have a number in "x"|take \d+ bytes)/);
    },
  );
});
