/**
 * The throttle for log lines about a persistent problem. A problem is logged when it begins, when it changes, and then
 * once a minute. Each subject (an activity, or its target) has a throttle of its own.
 */
import { performance } from 'node:perf_hooks';
import type { Log } from './log.ts';

export interface LogThrottleOptions {
  /** The interval at which an unchanged problem is logged; default: 60 s. */
  readonly everyMs?: number;
  /** A clock that never runs backwards, in milliseconds. */
  readonly clock?: () => number;
}

const defaultEveryMs = 60_000;

export class LogThrottle {
  readonly #logged = new Map<string, { readonly problem: string; readonly atMs: number }>();
  readonly #everyMs: number;
  readonly #clock: () => number;

  constructor({ everyMs = defaultEveryMs, clock = () => performance.now() }: LogThrottleOptions = {}) {
    this.#everyMs = everyMs;
    this.#clock = clock;
  }

  /** Whether to log this problem of this subject now. The caller logs it if so. */
  isDue(subject: string, problem: unknown): boolean {
    const text = problem instanceof Error ? problem.message : String(problem);
    const atMs = this.#clock();
    const last = this.#logged.get(subject);
    if (last?.problem === text && atMs - last.atMs < this.#everyMs) return false;
    this.#logged.set(subject, { problem: text, atMs });
    return true;
  }

  /** The problem is over: the next one is logged at once. Returns whether there was one. */
  clear(subject: string): boolean {
    return this.#logged.delete(subject);
  }
}

/** Handles the errors of one activity: logs a warning, throttled. */
export function warnThrottled(log: Log, message: string): (error: unknown) => void {
  const throttle = new LogThrottle();
  return (error) => {
    if (throttle.isDue(message, error)) log.warn({ err: error }, message);
  };
}
