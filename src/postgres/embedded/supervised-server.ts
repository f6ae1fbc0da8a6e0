/**
 * The embedded server as a service. If it ends while we run, it is started again under the same address, and retried until it
 * succeeds. Its clients reconnect by themselves.
 */
import { delayMs, reconnect } from '../../kernel/backoff.ts';
import { leftUntil, loop, type Service } from '../../kernel/service.ts';
import { type EmbeddedOptions, type EmbeddedServer, startEmbedded, stopEmbedded } from './embedded.ts';

export interface Supervised extends Service {
  /** The current server. Throws before `start`. */
  server(): EmbeddedServer;
}

export function supervised(options: EmbeddedOptions): Supervised {
  return new SupervisedServer(options);
}

class SupervisedServer implements Supervised {
  readonly name = 'embedded PostgreSQL';
  readonly #options: EmbeddedOptions;
  readonly #restarting: Service;
  #server: EmbeddedServer | undefined;
  /** Aborts when the service stops; undefined while it is stopped. */
  #abort: AbortController | undefined;

  constructor(options: EmbeddedOptions) {
    const { log } = options;
    this.#options = options;
    const onError = (error: unknown): void => log.error({ err: error }, 'the embedded PostgreSQL did not start');
    this.#restarting = loop(
      'restart of PostgreSQL',
      (signal) => this.#restartWhenLost(signal),
      onError,
      (failures) => delayMs(reconnect, failures),
    );
  }

  server(): EmbeddedServer {
    if (this.#server === undefined) throw new Error('the embedded PostgreSQL was not started');
    return this.#server;
  }

  async start(): Promise<void> {
    if (this.#abort !== undefined) return;
    const abort = new AbortController();
    this.#abort = abort;
    try {
      this.#server = await startEmbedded(this.#options);
    } catch (error) {
      this.#abort = undefined;
      throw error;
    }
    if (abort.signal.aborted) await this.#server.stop();
    else await this.#restarting.start();
  }

  /** PostgreSQL may write a checkpoint until the deadline; then it is ended without. */
  async stop(deadlineMs?: number): Promise<void> {
    if (this.#abort === undefined) return;
    this.#abort.abort();
    this.#restarting.quiet?.();
    const fastMs = deadlineMs === undefined ? undefined : leftUntil(deadlineMs);
    // also ends a server that is recovering; otherwise we would wait until it is ready
    await stopEmbedded(this.#options.home, { ...this.#options, mode: 'fast', fastMs });
    await this.#restarting.stop();
    await this.#server?.stop('fast', fastMs);
    this.#abort = undefined;
  }

  async #restartWhenLost(signal: AbortSignal): Promise<void> {
    const { log } = this.#options;
    await lost(this.#server, signal);
    if (signal.aborted) return;
    log.error({ serverPid: this.#server?.pid }, 'the embedded PostgreSQL ended unasked and is started again');
    this.#server = await startEmbedded(this.#options);
  }
}

async function lost(server: EmbeddedServer | undefined, signal: AbortSignal): Promise<void> {
  await new Promise<void>((resolve) => {
    signal.addEventListener('abort', () => resolve(), { once: true });
    if (signal.aborted) resolve();
    server?.onExit(resolve);
  });
}
