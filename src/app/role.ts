/** What every role is given, and how it waits for its end. */
import type { Config } from '../config.ts';

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
