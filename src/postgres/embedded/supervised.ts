/**
 * The embedded server as a service: if it dies while we run, it is started again, under the same address, for as long
 * as it takes. Those connected to it reconnect by their own means.
 */
import { persist, reconnect } from '../../kernel/backoff.ts';
import { leftUntil, type Service } from '../../kernel/service.ts';
import { type EmbeddedOptions, type EmbeddedServer, startEmbedded, stopEmbedded } from './embedded.ts';

export interface Supervised extends Service {
  /** The server that runs now. Throws before `start`. */
  server(): EmbeddedServer;
}

export function supervised(options: EmbeddedOptions): Supervised {
  const { log } = options;
  let server: EmbeddedServer | undefined;
  let abort: AbortController | undefined;
  let watching: Promise<void> = Promise.resolve();

  const watch = async (signal: AbortSignal): Promise<void> => {
    for (;;) {
      await lost(server, signal);
      if (signal.aborted) return;
      log.error({ pid: server?.pid }, 'the embedded PostgreSQL ended unasked and is started again');
      const onRetry = (error: unknown): void => log.error({ err: error }, 'the embedded PostgreSQL did not start');
      server = await persist(() => startEmbedded(options), { backoff: reconnect, signal, onRetry });
    }
  };
  return {
    name: 'embedded PostgreSQL',
    server() {
      if (server === undefined) throw new Error('the embedded PostgreSQL was not started');
      return server;
    },
    async start() {
      if (abort !== undefined) return;
      const control = new AbortController();
      abort = control;
      try {
        server = await startEmbedded(options);
      } catch (error) {
        abort = undefined;
        throw error;
      }
      if (control.signal.aborted) await server.stop();
      else watching = watch(control.signal).catch(() => {});
    },
    /** Until the deadline PostgreSQL may write a checkpoint; then it is ended without. */
    async stop(deadlineMs) {
      if (abort === undefined) return;
      abort.abort();
      const fastMs = deadlineMs === undefined ? undefined : leftUntil(deadlineMs);
      // one that is just recovering is ended too, or we would wait for it to get ready first
      await stopEmbedded(options.home, { ...options, mode: 'fast', fastMs });
      await watching;
      await server?.stop('fast', fastMs);
      abort = undefined;
    },
  };
}

async function lost(server: EmbeddedServer | undefined, signal: AbortSignal): Promise<void> {
  await new Promise<void>((resolve) => {
    signal.addEventListener('abort', () => resolve(), { once: true });
    if (signal.aborted) resolve();
    server?.onExit(resolve);
  });
}
