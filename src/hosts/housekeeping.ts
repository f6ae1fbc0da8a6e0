/**
 * Housekeeping: a tenant's work that can wait (retention, vacuum). It belongs to the tenant's scheduler and runs in its
 * slot, so that it needs none of its own: a tenant that runs never grows for ever because no slot is free.
 *
 * A host does a few pieces of work at a time, and one of each tenant; the others wait in line.
 */
import type { EngineContext } from '../contract/context.ts';
import { Semaphore } from '../kernel/semaphore.ts';
import { makeSerial } from '../kernel/serial.ts';

/** Each keeps one connection of its tenant busy, and a processor of the server. */
const maxAtOnce = 4;
/** How long work may go on after its scheduler was told to end: by then its connections are taken from it. */
const usualEndMs = 6_000;

export class Housekeeping {
  readonly #permits = new Semaphore(maxAtOnce);
  readonly #endMs: number;

  constructor(endMs = usualEndMs) {
    this.#endMs = endMs;
  }

  /** What one tenant's scheduler is given. When the signal aborts, nobody waits any longer. */
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

/** Work that goes on for so long after its scheduler was to end is left to itself. */
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
