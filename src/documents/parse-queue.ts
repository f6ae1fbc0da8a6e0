/**
 * Queues the work on documents: parsing, in a thread or not, and the forecast of triggers. Tenants take turns, so that one
 * tenant's documents do not delay another's.
 *
 * 1. At most `threads` documents are in progress at a time, and at most one of each tenant.
 * 2. A place that becomes free takes a document of the tenant whose last turn, or arrival, is longest ago.
 * 3. At most `waitingPerTenant` documents of one tenant wait. Further ones are rejected with 503.
 * 4. A document whose client has disconnected leaves the queue.
 */
import { clientGone, MillraceError } from '../errors.ts';

export interface QueueLimits {
  readonly threads: number;
  readonly waitingPerTenant: number;
}

interface Line {
  isRunning: boolean;
  readonly waiting: (() => void)[];
}

export class ParseQueue {
  readonly #limits: QueueLimits;
  #running = 0;
  /** By tenant, in the order of turns. A tenant enters at the end, and moves to the end when one of its documents is done. */
  readonly #lines = new Map<string, Line>();

  constructor(limits: QueueLimits) {
    this.#limits = limits;
  }

  async run<T>(tenant: string, work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    await this.#enter(tenant, signal);
    try {
      return await work();
    } finally {
      this.#leave(tenant);
    }
  }

  async #enter(tenant: string, signal: AbortSignal | undefined): Promise<void> {
    if (signal?.aborted) throw clientGone();
    const line = this.#lines.get(tenant) ?? { isRunning: false, waiting: [] };
    this.#lines.set(tenant, line);
    const { threads, waitingPerTenant } = this.#limits;
    if (!line.isRunning && this.#running < threads) {
      this.#begin(line);
      return;
    }
    if (line.waiting.length >= waitingPerTenant) throw tooMany(waitingPerTenant);
    await this.#wait(tenant, line, signal);
  }

  #wait(tenant: string, line: Line, signal: AbortSignal | undefined): Promise<void> {
    return new Promise<void>((resolve, reject) => {
      const begin = (): void => {
        signal?.removeEventListener('abort', drop);
        resolve();
      };
      const drop = (): void => {
        line.waiting.splice(line.waiting.indexOf(begin), 1);
        this.#forgetIdle(tenant, line);
        reject(clientGone());
      };
      signal?.addEventListener('abort', drop, { once: true });
      line.waiting.push(begin);
    });
  }

  #begin(line: Line): void {
    this.#running++;
    line.isRunning = true;
  }

  #leave(tenant: string): void {
    this.#running--;
    const own = this.#lines.get(tenant);
    this.#lines.delete(tenant);
    if (own !== undefined) {
      own.isRunning = false;
      if (own.waiting.length > 0) this.#lines.set(tenant, own);
    }
    for (const line of this.#lines.values()) {
      const begin = line.isRunning ? undefined : line.waiting.shift();
      if (begin === undefined) continue;
      this.#begin(line);
      begin();
      return;
    }
  }

  #forgetIdle(tenant: string, line: Line): void {
    if (!line.isRunning && line.waiting.length === 0) this.#lines.delete(tenant);
  }
}

function tooMany(waiting: number): MillraceError {
  const detail = `${waiting} documents of this tenant are already waiting; send this one again when they are done`;
  return new MillraceError('overloaded', detail, { headers: { 'retry-after': '5' } });
}
