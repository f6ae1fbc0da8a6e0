/** The parameters of every role, and the two-phase end of a role. */
import type { Config } from '../config.ts';
import type { Log } from '../kernel/log.ts';
import { deadlineIn, leftUntil, type Service, stopOne, within } from '../kernel/service.ts';

export interface Role {
  readonly config: Config;
  /** Aborts when the role is to end. */
  readonly signal: AbortSignal;
  /** Prints a line for the user. */
  readonly say: (line: string) => void;
}

/** The opened resource, or undefined if the signal aborts first. The process ends then, and the resource with it. */
export function unlessAborted<T>(signal: AbortSignal, opening: Promise<T>): Promise<T | undefined> {
  return Promise.race([opening, untilAborted(signal).then(() => undefined)]);
}

export async function untilAborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
}

/** The end of a role. It may take `stopMs` from the abort of its signal, or from when the role ends by itself. */
export class RoleEnd {
  readonly #stopMs: number;
  readonly #log: Log;
  #deadlineMs: number | undefined;

  constructor(signal: AbortSignal, stopMs: number, log: Log) {
    this.#stopMs = stopMs;
    this.#log = log;
    if (signal.aborted) this.deadlineBefore(0);
    else signal.addEventListener('abort', () => this.deadlineBefore(0), { once: true });
  }

  /** The deadline of the whole end, minus the time reserved for later steps. */
  deadlineBefore(reserveMs: number): number {
    this.#deadlineMs ??= deadlineIn(this.#stopMs);
    return this.#deadlineMs - reserveMs;
  }

  /** Stops the service, and logs each part that did not stop in time. */
  async stop(service: Service, reserveMs = 0): Promise<void> {
    const late = await stopOne(service, this.deadlineBefore(reserveMs));
    for (const sentence of late) this.#log.warn({ reason: sentence }, 'service did not stop');
  }

  /** A last step that is not a service. If it fails or is too slow, it is logged and abandoned. */
  async finish(step: string, work: Promise<unknown>, reserveMs = 0): Promise<void> {
    const ended = work.then(
      () => true,
      (error: unknown) => {
        this.#log.warn({ err: error, step }, 'shutdown step failed');
        return true;
      },
    );
    if ((await within(leftUntil(this.deadlineBefore(reserveMs)), ended)) === undefined)
      this.#log.warn({ step }, 'shutdown step too slow, abandoned');
  }
}
