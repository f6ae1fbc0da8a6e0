import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { MillraceError } from '../errors.ts';
import { newId } from '../kernel/id.ts';
import { type LocalServer, shell, type SomeHandlers, startLocalServer } from './fixture.ts';
import type { RunItem } from './pages.ts';
import { readEvents } from './sse.ts';

const at = '2030-01-01T00:00:00.000Z';
const job = newId();
let server: LocalServer | undefined;
afterEach(async () => {
  await server?.stop();
  server = undefined;
});
const start = async (handlers: SomeHandlers, port?: number): Promise<LocalServer> => {
  server = await startLocalServer(handlers, port);
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

/** A server whose job goes through these scenes, one per look: its runs (newest first) and the state of its token. */
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
  it('waits for what follows, and succeeds if all did', async () => {
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

  it('waits for a retry, and takes the last attempt for the outcome', async () => {
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

  it('ends with 1 when a run failed, and pays no heed to older runs of the instant', async () => {
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

  it('sends what it was told', async () => {
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
  it('are filtered, and read page by page', async () => {
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

  it('of a task need its job', async () => {
    const { env } = await start({});
    expect((await shell(['runs', '--task', 't'], { env })).code).toBe(2);
  });
});

/** A body that is sent bit by bit, and stays open unless it is told to end. */
function body(parts: readonly string[], end: boolean, onCancel: () => void = () => {}): Response {
  const stream = new ReadableStream({
    async start(controller) {
      for (const part of parts) {
        controller.enqueue(new TextEncoder().encode(part));
        await sleep(1);
      }
      if (end) controller.close();
    },
    cancel: onCancel,
  });
  return new Response(stream, { headers: { 'content-type': 'text/plain; charset=utf-8' } });
}

describe('logs', () => {
  it('are printed as they are, or line by line as JSON', async () => {
    const { env, calls } = await start({ 'GET /api/runs/{id}/logs': async () => body(['hel', 'lo\nwor', 'ld'], true) });
    expect(await shell(['logs', job, '-f'], { env })).toEqual({ code: 0, stdout: 'hello\nworld', stderr: '' });
    expect(calls[0]).toBe(`GET /api/runs/${job}/logs?follow=true`);
    expect((await shell(['logs', job, '--json'], { env })).stdout).toBe('{"line":"hello"}\n{"line":"world"}\n');
  });

  it('of no run end with 5', async () => {
    const { env } = await start({
      'GET /api/runs/{id}/logs': async () => {
        throw new MillraceError('not_found', 'there is no such run');
      },
    });
    expect(await shell(['logs', job, '-f'], { env })).toEqual({
      code: 5,
      stdout: '',
      stderr: 'error: there is no such run\n',
    });
  });

  it('end with 130 on Ctrl-C, and let go of the connection', async () => {
    let cancelled: (() => void) | undefined;
    const letGo = new Promise<void>((resolve) => {
      cancelled = resolve;
    });
    const { env } = await start({ 'GET /api/runs/{id}/logs': async () => body(['x'], false, () => cancelled?.()) });
    const abort = new AbortController();
    const ran = await shell(['logs', job, '-f'], { env, signal: abort.signal, onOutput: () => abort.abort() });
    expect(ran).toEqual({ code: 130, stdout: 'x', stderr: '' });
    await letGo;
  });

  it('end with 3 when the connection is lost', async () => {
    const cut = async (): Promise<Response> => {
      const stream = new ReadableStream({
        async start(controller) {
          controller.enqueue(new TextEncoder().encode('x\n'));
          await sleep(50);
          controller.error(new Error('the server dies'));
        },
      });
      return new Response(stream, { headers: { 'content-type': 'text/plain' } });
    };
    const { env } = await start({ 'GET /api/runs/{id}/logs': cut });
    for (const argv of [
      ['logs', job, '-f'],
      ['logs', job, '-f', '--json'],
    ]) {
      const ran = await shell(argv, { env });
      expect(ran.code).toBe(3);
      expect(ran.stdout).toContain('x');
      expect(ran.stderr).toContain('the connection was lost');
    }
  });

  it('end quietly when nobody reads any more', async () => {
    const { env } = await start({ 'GET /api/runs/{id}/logs': async () => body(['x'], false) });
    const epipe = Object.assign(new Error('write EPIPE'), { code: 'EPIPE' });
    const ran = await shell(['logs', job, '-f'], { env, onOutput: (_, stdout) => void stdout.destroy(epipe) });
    expect(ran).toEqual({ code: 0, stdout: 'x', stderr: '' });
  });

  it('end with 1 when the answer cannot be written', async () => {
    const { env } = await start({ 'GET /api/runs/{id}/logs': async () => body(['x'], false) });
    const full = Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' });
    const ran = await shell(['logs', job, '-f'], { env, onOutput: (_, stdout) => void stdout.destroy(full) });
    expect(ran.code).toBe(1);
    expect(ran.stderr).toContain('no space left');
  });
});

describe('events', () => {
  const event = (id: number): string => `: hi\nid: ${id}\nevent: run.created\ndata: {"job":"j","n":${id},"x":null}\n\n`;

  it('are followed over a lost connection, without a gap', async () => {
    const asked: (string | null)[] = [];
    const { env } = await start({
      'GET /api/events': async ({ request }) => {
        const last = request.headers.get('last-event-id');
        asked.push(last);
        return body([event(Number(last) + 1), `id: 99\ndata: cut`], true);
      },
    });
    const abort = new AbortController();
    const ran = await shell(['events', '--after', '4', '--topic', 'millrace_runs'], {
      env,
      signal: abort.signal,
      onOutput: (text) => text.startsWith('7 ') && abort.abort(),
    });
    expect(ran.code).toBe(130);
    expect(ran.stdout).toBe([5, 6, 7].map((n) => `${n} run.created job=j n=${n}\n`).join(''));
    expect(asked).toEqual(['4', '5', '6']);
  });

  it('are JSON lines if asked', async () => {
    const { env } = await start({ 'GET /api/events': async () => body([event(1)], false) });
    const abort = new AbortController();
    const ran = await shell(['events', '--json'], { env, signal: abort.signal, onOutput: () => abort.abort() });
    expect(JSON.parse(ran.stdout)).toEqual({ seq: 1, type: 'run.created', data: { job: 'j', n: 1, x: null } });
  });

  it('end with 4 where the key may not read them', async () => {
    const { url } = await start({ 'GET /api/events': async () => body([], true) });
    expect((await shell(['events'], { env: { MILLRACE_URL: url } })).code).toBe(4);
  });

  it.each([1, 2, 3, 7, 1000])('are read the same in pieces of %i bytes', async (size) => {
    const bytes = new TextEncoder().encode(
      'data: ä\r\ndata:b\r\n\r\n:c\nid: 1\revent: e\rdata\r\r\ndata: x\n\nid: 2\n\ndata: cut',
    );
    async function* pieces() {
      for (let i = 0; i < bytes.length; i += size) yield bytes.slice(i, i + size);
    }
    const events = [];
    for await (const each of readEvents(pieces())) events.push(each);
    expect(events).toEqual([
      { id: '', event: 'message', data: 'ä\nb' },
      { id: '1', event: 'e', data: '' },
      { id: '1', event: 'message', data: 'x' },
    ]);
  });
});
