/** Lets a reader that has reached the end of its data wait for a wake-up. */
import type { HintKind, Hints } from '../contract/channels.ts';
import { Bell } from '../kernel/bell.ts';
import { systemTime } from '../kernel/time.ts';

export interface HintBell extends Pick<Bell, 'wait'> {
  /** Stops listening. */
  close(): void;
}

export function makeHintBell(hints: Hints, kinds: readonly HintKind[]): HintBell {
  const bell = new Bell(systemTime);
  const stops = kinds.map((kind) => hints.on(kind, () => bell.ring()));
  return {
    wait: (timeoutMs, signal) => bell.wait(timeoutMs, signal),
    close: () => stops.forEach((stop) => stop()),
  };
}
