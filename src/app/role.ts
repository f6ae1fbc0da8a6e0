/** What every role is given, how it waits for its end, and how it ends in time. */
import type { Config } from '../config.ts';
import type { Log } from '../kernel/log.ts';
import { deadlineIn, leftUntil, type Service, stopOne, within } from '../kernel/service.ts';

export interface Role {
  readonly config: Config;
  /** Aborts when the role is to end. */
  readonly signal: AbortSignal;
  /** What a person should read. */
  readonly say: (line: string) => void;
}

/** What a role opens first; nothing if it is to end before that is there, and with it this process. */
export function unlessAborted<T>(signal: AbortSignal, opening: Promise<T>): Promise<T | undefined> {
  return Promise.race([opening, untilAborted(signal).then(() => undefined)]);
}

export async function untilAborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
}

/** The end of a role, which may take `stopMs` from the abort of its signal, or from when the role ends by itself. */
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

  /** A deadline that leaves this much time for the steps that follow. */
  deadlineBefore(reserveMs: number): number {
    this.#deadlineMs ??= deadlineIn(this.#stopMs);
    return this.#deadlineMs - reserveMs;
  }

  /** Stops the service, and logs each part of it that did not stop in time. */
  async stop(service: Service, reserveMs = 0): Promise<void> {
    const late = await stopOne(service, this.deadlineBefore(reserveMs));
    for (const sentence of late) this.#log.warn({ reason: sentence }, 'a service did not stop');
  }

  /** A last step that is no service. A step that fails, or is not over in time, is logged and abandoned. */
  async finish(step: string, work: Promise<unknown>, reserveMs = 0): Promise<void> {
    const ended = work.then(
      () => true,
      (error: unknown) => {
        this.#log.warn({ err: error, step }, 'a last step failed');
        return true;
      },
    );
    if ((await within(leftUntil(this.deadlineBefore(reserveMs)), ended)) === undefined)
      this.#log.warn({ step }, 'a last step was not over in time and is abandoned');
  }
}
