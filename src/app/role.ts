/** What every role is given, and how it waits for its end. */
import type { Config } from '../config.ts';

export interface Role {
  readonly config: Config;
  /** Aborts when the role is to end. */
  readonly signal: AbortSignal;
  /** What a person should read. */
  readonly say: (line: string) => void;
}

export async function untilAborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
}
