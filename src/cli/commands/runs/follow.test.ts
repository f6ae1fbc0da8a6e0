import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { lastingPort } from '../../../../test/harness/lasting-port.ts';
import { MillraceError } from '../../../errors.ts';
import { newId } from '../../../kernel/id.ts';
import { type LocalServer, shell, type SomeHandlers, startLocalServer } from '../../../../test/harness/cli/shell.ts';
import { readEvents } from '../../session/sse.ts';

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

/** A body that is sent in pieces, and stays open unless `end` is true. */
function body(parts: readonly string[], end: boolean, onCancel: () => void = () => {}): Response {
  const stream = new ReadableStream({
    async start(controller) {
      for (const part of parts) {
        controller.enqueue(new TextEncoder().encode(part));
        await turn();
      }
      if (end) controller.close();
    },
    cancel: onCancel,
  });
  return new Response(stream, { headers: { 'content-type': 'text/plain; charset=utf-8' } });
}

describe('logs', () => {
  it('logs are printed unchanged, or line by line as JSON', async () => {
    const { env, calls } = await start({ 'GET /api/runs/{id}/logs': async () => body(['hel', 'lo\nwor', 'ld'], true) });
    expect(await shell(['logs', job, '-f'], { env })).toEqual({ code: 0, stdout: 'hello\nworld', stderr: '' });
    expect(calls[0]).toBe(`GET /api/runs/${job}/logs?follow=true`);
    expect((await shell(['logs', job, '--json'], { env })).stdout).toBe('{"line":"hello"}\n{"line":"world"}\n');
  });

  it('the log of an unknown run ends the command with 5', async () => {
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

  it('Ctrl-C ends logs with 130, and closes the connection', async () => {
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

  it.each([
    [['logs', job, '-f'], 'one\ntwo\nthree\n'],
    [['logs', job, '-f', '--json'], '{"line":"one"}\n{"line":"two"}\n{"line":"three"}\n'],
  ])('logs are followed over a restart of the server, without a gap or a repetition: %j', async (argv, expected) => {
    const log = async (): Promise<Response> => body(['one\nt', 'wo\n'], false);
    const first = await start({ 'GET /api/runs/{id}/logs': log }, await lastingPort());
    let seen = '';
    let restarted: Promise<unknown> | undefined;
    const ran = await shell(argv, {
      env: first.env,
      onOutput: (text) => {
        seen += text;
        if (seen.includes('two')) restarted ??= restart(first);
      },
    });
    await restarted;
    expect(ran).toEqual({ code: 0, stdout: expected, stderr: 'connection lost; reconnecting\n' });
  });

  /** Stops the server, then starts it again at the same address, first without its database. */
  async function restart(before: LocalServer): Promise<void> {
    await before.stop();
    let calls = 0;
    const log = async (): Promise<Response> => {
      if (calls++ === 0) throw new MillraceError('database_unavailable', 'not yet');
      return body(['one\n', 'two\nthr', 'ee\n'], true);
    };
    await start({ 'GET /api/runs/{id}/logs': log }, Number(new URL(before.url).port));
  }

  it('logs end with 3 if the server stays unreachable, and with 5 if the run was deleted', async () => {
    const local = await start({ 'GET /api/runs/{id}/logs': async () => body(['x\n'], false) });
    // each reading of the clock is ten seconds later
    let nowMs = Date.now();
    const clock = vi.spyOn(Date, 'now').mockImplementation(() => (nowMs += 10_000));
    const ran = await shell(['logs', job, '-f'], { env: local.env, onOutput: () => void local.stop() });
    clock.mockRestore();
    expect([ran.code, ran.stdout]).toEqual([3, 'x\n']);
    expect(ran.stderr).toContain('connection lost; the log may be incomplete');

    let calls = 0;
    const other = await start({
      'GET /api/runs/{id}/logs': async () => {
        if (calls++ > 0) throw new MillraceError('not_found', 'there is no such run');
        return body(['x\n'], false);
      },
    });
    expect((await shell(['logs', job, '-f'], { env: other.env, onOutput: () => other.drop() })).code).toBe(5);
  });

  it('logs without --follow end with 3 if the connection is lost', async () => {
    const local = await start({ 'GET /api/runs/{id}/logs': async () => body(['x\n'], false) });
    const ran = await shell(['logs', job], { env: local.env, onOutput: () => local.drop() });
    expect([ran.code, ran.stdout]).toEqual([3, 'x\n']);
    expect(ran.stderr).toContain('the log is incomplete');
  });

  it('logs end without an error if the reader closes the pipe', async () => {
    const { env } = await start({ 'GET /api/runs/{id}/logs': async () => body(['x'], false) });
    const epipe = Object.assign(new Error('write EPIPE'), { code: 'EPIPE' });
    const ran = await shell(['logs', job, '-f'], { env, onOutput: (_, stdout) => void stdout.destroy(epipe) });
    expect(ran).toEqual({ code: 0, stdout: 'x', stderr: '' });
  });

  it('logs end with 1 if the output cannot be written', async () => {
    const { env } = await start({ 'GET /api/runs/{id}/logs': async () => body(['x'], false) });
    const full = Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' });
    const ran = await shell(['logs', job, '-f'], { env, onOutput: (_, stdout) => void stdout.destroy(full) });
    expect(ran.code).toBe(1);
    expect(ran.stderr).toContain('no space left');
  });
});

describe('events', () => {
  const at = '2030-01-01T00:00:00.000Z';
  const logged = (seq: number) => ({
    seq,
    topic: 'millrace_runs',
    type: 'run.created',
    subject: job,
    actor: 'root',
    cause: null,
    at,
    body: { n: seq, x: null },
  });
  const event = (seq: number): string =>
    `: hi\nid: ${seq}\nevent: millrace_runs\ndata: ${JSON.stringify(logged(seq))}\n\n`;

  it('events are followed over a lost connection, without a gap', async () => {
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
    expect(ran.stdout).toBe([5, 6, 7].map((n) => `${n} ${at} run.created ${job} n=${n} by root\n`).join(''));
    expect(asked).toEqual(['4', '5', '6']);
  });

  it('events are JSON lines with --json', async () => {
    const { env } = await start({ 'GET /api/events': async () => body([event(1)], false) });
    const abort = new AbortController();
    const ran = await shell(['events', '--json'], { env, signal: abort.signal, onOutput: () => abort.abort() });
    expect(JSON.parse(ran.stdout)).toEqual(logged(1));
  });

  it('events end with 4 if the key may not read them', async () => {
    const { url } = await start({ 'GET /api/events': async () => body([], true) });
    expect((await shell(['events'], { env: { MILLRACE_URL: url } })).code).toBe(4);
  });

  it.each([1, 2, 3, 7, 1000])('events are read correctly in pieces of %i bytes', async (size) => {
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

describe('output that cannot be written', () => {
  it('a failed write ends a command with 1, even if it was the last step', async () => {
    const full = Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' });
    const ran = await shell(['schema'], { onOutput: (_, stdout) => void stdout.destroy(full) });
    expect(ran.code).toBe(1);
    expect(ran.stderr).toContain('no space left');
  });
});
