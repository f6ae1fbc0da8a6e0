/**
 * Housekeeping: a tenant's work that can wait (retention, vacuum). It runs in the slot of the tenant's scheduler. It needs no
 * slot of its own, so the data of a running tenant cannot grow without limit for lack of a free slot.
 *
 * A host does four pieces of work at a time, at most one for each tenant; the others wait in line.
 */
import type { EngineContext } from '../contract/context.ts';
import { Semaphore } from '../kernel/semaphore.ts';
import { makeSerial } from '../kernel/serial.ts';

/** Pieces of work at a time per host. Each keeps one connection of its tenant and one processor of the server busy. */
const maxAtOnce = 4;
/** How long to wait for running work after its scheduler was told to end. By then its connections have been closed. */
const usualEndMs = 6_000;

export class Housekeeping {
  readonly #permits = new Semaphore(maxAtOnce);
  readonly #endMs: number;

  constructor(endMs = usualEndMs) {
    this.#endMs = endMs;
  }

  /** The housekeeping function of one tenant's scheduler. When the signal aborts, waiting work is dropped. */
  of(signal: AbortSignal): EngineContext['housekeeping'] {
    const inTurn = makeSerial();
    return (_, work) => inTurn(() => this.#inTurn(work, signal));
  }

  async #inTurn<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T | undefined> {
    const permit = await this.#permits.take(signal);
    if (permit === undefined) return undefined;
    try {
      return await unlessOver(work(), signal, this.#endMs);
    } finally {
      permit.release();
    }
  }
}

/** Resolves with undefined if the work is still going on `graceMs` after the signal has aborted. */
async function unlessOver<T>(work: Promise<T>, signal: AbortSignal, graceMs: number): Promise<T | undefined> {
  let onAbort = (): void => {};
  const over = new Promise<undefined>((resolve) => {
    onAbort = () => void setTimeout(() => resolve(undefined), graceMs).unref();
  });
  signal.addEventListener('abort', onAbort, { once: true });
  if (signal.aborted) onAbort();
  try {
    return await Promise.race([work, over]);
  } finally {
    signal.removeEventListener('abort', onAbort);
    work.catch(() => {});
  }
}
