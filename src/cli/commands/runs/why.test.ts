import { afterEach, describe, expect, it, vi } from 'vitest';
import { MillraceError } from '../../../errors.ts';
import { newId } from '../../../kernel/id.ts';
import { type LocalServer, shell, type SomeHandlers, startLocalServer } from '../../../../test/harness/cli/shell.ts';

const at = '2030-01-01T00:00:00.000Z';
const [task, trigger, run, job] = [newId(), newId(), newId(), newId()];
let server: LocalServer | undefined;
afterEach(async () => {
  vi.useRealTimers();
  await server?.stop();
  server = undefined;
});

function why(kind: 'run' | 'token' | 'trigger', id: string) {
  return {
    subject: { kind, id, name: 'p/j/task/t', instant: at, job },
    state: 'active' as const,
    summary: 'p/j/task/t has not started: no worker is alive.',
    reasons: [{ code: 'no_worker' as const, message: 'no worker is alive', data: {} }],
    chain: [{ what: 'person' as const, id: 'key:ann', at, message: 'key:ann\u001b[2J ran the job' }],
    next: 'start one: millrace worker',
  };
}

const handlers: SomeHandlers = {
  'GET /api/projects': async () => ({ id: newId(), name: 'p', description: '' }),
  'GET /api/jobs': async () => ({ id: job, project_id: job, name: 'j', description: '', paused: false }),
  'GET /api/jobs/{id}/tasks': async () => [
    { task_id: task, name: 't', latest_trigger_datetime: null, latest_state: null },
  ],
  'GET /api/jobs/{id}/triggers': async () => [
    {
      trigger_id: trigger,
      trigger_name: 'night',
      start_datetime: at,
      end_datetime: null,
      earliest_trigger_datetime: null,
      latest_trigger_datetime: null,
      period: 60,
      cron: null,
      timezone: null,
      trigger_offset: null,
      catchup: 'none',
    },
  ],
  'GET /api/explain/run/{id}': async ({ params }) => why('run', params.id),
  'GET /api/explain/token/{id}': async ({ params }) => why('token', params.id.task),
  'GET /api/explain/trigger/{id}': async ({ params }) => why('trigger', params.id),
};

async function start(more: SomeHandlers = {}): Promise<LocalServer> {
  server = await startLocalServer({ ...handlers, ...more });
  return server;
}

describe('why', () => {
  it('why prints summary, reasons, chain and advice, with control characters escaped', async () => {
    const { env } = await start();
    const { stdout } = await shell(['why', run], { env });
    expect(stdout.split('\n')).toEqual([
      'p/j/task/t has not started: no worker is alive.',
      '',
      'state: ready',
      `id:    ${run}`,
      '',
      'why:',
      '  no worker is alive (no_worker)',
      '',
      'how it came about:',
      String.raw`  2030-01-01T00:00:00Z key:ann\u001b[2J ran the job`,
      '',
      'next:',
      '  start one: millrace worker',
      '',
    ]);
  });

  it('why prints the unchanged response with --json', async () => {
    const { env } = await start();
    expect(JSON.parse((await shell(['why', run, '--json'], { env })).stdout)).toEqual(why('run', run));
  });

  it.each([
    [run, `run/${run}`],
    [`${task}@${at}`, `token/${task}%40${encodeURIComponent(at)}`],
    ['p/j/t', `token/${task}`],
    ['p/j/task/t', `token/${task}`],
    ['p/j/t@2030-01-01T01:00:00+01:00', `token/${task}%40${encodeURIComponent(at)}`],
    ['p/j/trigger/night', `trigger/${trigger}`],
    [`p/j/trigger/night@${at}`, `trigger/${trigger}?instant=${encodeURIComponent(at)}`],
  ])('why accepts %s', async (what, path) => {
    const { env, calls } = await start();
    expect((await shell(['why', what], { env })).code).toBe(0);
    expect(calls.at(-1)).toBe(`GET /api/explain/${path}`);
  });

  it.each(['p', 'p/j', 'p/j/t/x', 'p//t', 'p/j/flow/x', 'p/j/task/t/x', 'p/j/t@yesterday', `${run}@`])(
    'why rejects %s',
    async (what) => {
      const { env, calls } = await start();
      expect((await shell(['why', what], { env })).code).toBe(2);
      expect(calls).toEqual([]);
    },
  );

  it('an error about an unknown task or trigger lists the existing ones', async () => {
    const { env } = await start();
    expect(await shell(['why', 'p/j/x'], { env })).toMatchObject({
      code: 5,
      stderr: expect.stringContaining('its tasks: t') as string,
    });
    expect(await shell(['why', 'p/j/trigger/x'], { env })).toMatchObject({
      code: 5,
      stderr: expect.stringContaining('its triggers: night') as string,
    });
  });
});

describe('run --wait', () => {
  const ready = {
    id: run,
    state: 'active' as const,
    job: { id: job, name: 'j', project: 'p' },
    task: { id: task, name: 't' },
    instant: at,
    version: 1,
    attempt: 1,
    priority: 'high' as const,
    lease: 0,
    worker_id: null,
    cause: null,
    queued_at: at,
    started_at: null,
    finished_at: null,
    reason: null,
    exit_code: null,
  };

  /** Requests come three seconds after each other; the seventh finds the run ended. */
  function slowly(): SomeHandlers {
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() });
    let look = 0;
    const state = (): 'active' | 'success' => (look < 7 ? 'active' : 'success');
    return {
      'POST /api/jobs/{id}/run': async () => ({ instant: at, runs: [run] }),
      'GET /api/runs': async () => ({ items: [{ ...ready, state: state() }], next: null }),
      'GET /api/jobs/{id}/tokens/{instant}': async () => {
        look++;
        vi.setSystemTime(Date.now() + 3_000);
        return [{ task_id: task, task_name: 't', trigger_datetime: at, state: state(), count: 0, threshold: 1 }];
      },
    };
  }

  it('run --wait explains once, after five seconds, why a run has not started', async () => {
    const { env, calls } = await start(slowly());
    const ran = await shell(['run', job, '--wait'], { env });
    expect(ran.code).toBe(0);
    expect(ran.stderr.match(/no worker is alive/g)).toHaveLength(1);
    expect(ran.stderr).toContain('  start one: millrace worker');
    const asked = calls.indexOf(`GET /api/explain/run/${run}`);
    expect(calls.slice(0, asked).filter((call) => call.startsWith('GET /api/runs'))).toHaveLength(3);
  });

  it('run --wait keeps waiting if the explanation fails', async () => {
    const { env } = await start({
      ...slowly(),
      'GET /api/explain/run/{id}': async () => {
        throw new MillraceError('not_found', 'an older server');
      },
    });
    expect(await shell(['run', job, '--wait'], { env })).toMatchObject({ code: 0 });
  });
});

describe('why of an execution', () => {
  const missing = async (): Promise<never> => {
    throw new MillraceError('not_found', 'there is no such run');
  };
  const explained: SomeHandlers = {
    'GET /api/explain/run/{id}': missing,
    'GET /api/explain/execution/{id}': async ({ params: { id } }) => ({
      ...why('run', id),
      subject: { kind: 'execution', id, name: 'expense', instant: null, job: null },
      state: 'waiting',
      summary: 'expense waits for an answer of meg.',
    }),
  };

  it('An id that is not of a run may be of an execution', async () => {
    const { env, calls } = await start(explained);
    expect((await shell(['why', run], { env })).stdout).toMatch(
      /^expense waits for an answer of meg\.\n\nstate: waiting\n/,
    );
    expect((await shell(['why', 'execution', run], { env })).stdout).toMatch(/^expense waits/);
    expect(calls.map((call) => call.split('/')[3])).toEqual(['run', 'execution', 'execution']);
  });

  it('An id of neither is found nowhere', async () => {
    const { env } = await start({ ...explained, 'GET /api/explain/execution/{id}': missing });
    expect(await shell(['why', run], { env })).toEqual({
      code: 5,
      stdout: '',
      stderr: `error: there is no run and no execution ${run}\n`,
    });
  });
});
