/**
 * Removes containers in the background, so that the results of their runs need not wait for it. A removal that fails is repeated
 * until it succeeds: an engine that is away may still run the container.
 */
import { delayMs } from '../../kernel/backoff.ts';
import { type Log, silent } from '../../kernel/log.ts';
import { warnThrottled } from '../../kernel/log-throttle.ts';
import { pause } from '../../kernel/service.ts';
import { removeContainer } from './container-calls.ts';
import { type EngineClient, EngineError } from './engine-client.ts';

/** From half a second, up to 10 s. */
const again = { firstMs: 500, capMs: 10_000, jitter: 0.5 };
/** Rejections after which a removal is left to the next sweep. */
const maxRejections = 20;

export class Removals {
  readonly #client: EngineClient;
  readonly #warn: (error: unknown) => void;
  readonly #pending = new Set<Promise<void>>();
  #over = new AbortController();

  constructor(client: EngineClient, log: Log = silent) {
    this.#client = client;
    this.#warn = warnThrottled(log, 'removing a container failed, retrying');
  }

  get pending(): number {
    return this.#pending.size;
  }

  add(container: string): void {
    const removal = this.#remove(container, this.#over.signal).finally(() => this.#pending.delete(removal));
    this.#pending.add(removal);
  }

  /** Resolves when all are removed. */
  async settled(): Promise<void> {
    while (this.#pending.size > 0) await Promise.all(this.#pending);
  }

  /** Gives up the rest. */
  abandon(): void {
    this.#over.abort();
    this.#over = new AbortController();
  }

  async #remove(container: string, signal: AbortSignal): Promise<void> {
    let rejections = 0;
    for (let attempt = 0; !signal.aborted; attempt++) {
      try {
        return await removeContainer(this.#client, container, signal);
      } catch (error) {
        if (signal.aborted) return;
        this.#warn(error);
        if (error instanceof EngineError && ++rejections === maxRejections) return;
        await pause(delayMs(again, attempt), signal);
      }
    }
  }
}
