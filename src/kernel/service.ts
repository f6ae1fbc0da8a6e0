/** Life cycle: everything that runs in the background is a `Service`, made of a loop, an interval or other services. */
import { setTimeout as sleep } from 'node:timers/promises';

/** `start` returns once it is running; `stop` returns once nothing of it is left. Both may be called twice. */
export interface Service {
  readonly name: string;
  readonly start: () => Promise<void>;
  readonly stop: () => Promise<void>;
}

/** A service made of one long-running function, which must end soon after its signal aborts. */
export function loop(
  name: string,
  run: (signal: AbortSignal) => Promise<void>,
  onError: (e: unknown) => void,
): Service {
  let abort: AbortController | undefined;
  let running: Promise<void> | undefined;
  return {
    name,
    async start() {
      if (running) return;
      const control = new AbortController();
      abort = control;
      running = run(control.signal).catch((error: unknown) => {
        if (!control.signal.aborted) onError(error);
      });
    },
    async stop() {
      abort?.abort();
      await running;
      running = undefined;
    },
  };
}

/** A service that does one thing at an interval. The pass under way finishes before `stop` returns. */
export function every(
  intervalMs: number,
  name: string,
  pass: (signal: AbortSignal) => Promise<void>,
  onError: (e: unknown) => void,
): Service {
  return loop(
    name,
    async (signal) => {
      while (!signal.aborted) {
        await pass(signal).catch((error: unknown) => {
          if (!signal.aborted) onError(error);
        });
        await pause(intervalMs, signal);
      }
    },
    onError,
  );
}

/**
 * A service that repeats a pass for ever, each waiting by itself for something to do. A pass that fails is told and
 * tried again after a growing pause, so that a lost connection heals and a lasting fault does not flood the log. Others wait
 * for some of these services after an outage: their pauses stay short.
 */
export function steady(
  name: string,
  pass: (signal: AbortSignal) => Promise<void>,
  onError: (e: unknown) => void,
  longestPauseMs = 5_000,
): Service {
  return loop(
    name,
    async (signal) => {
      let failures = 0;
      while (!signal.aborted) {
        try {
          await pass(signal);
          failures = 0;
        } catch (error) {
          if (signal.aborted) return;
          onError(error);
          await pause(Math.min(longestPauseMs, 50 * 2 ** Math.min(failures++, 10)), signal);
        }
      }
    },
    onError,
  );
}

/** Sleeps, or returns early when the signal aborts; never throws. */
export async function pause(ms: number, signal?: AbortSignal): Promise<void> {
  await sleep(ms, undefined, signal ? { signal } : {}).catch(() => {});
}

/** What the work comes to, or undefined when it has come to nothing in that time; it is left to itself then. */
export function within<T>(ms: number, work: Promise<T>): Promise<T | undefined> {
  // on a hot path: 3 µs, where an AbortController and a promise of a timer took 100
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms, undefined);
    work.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

/**
 * Starts in order, and if one refuses, stops those already started. Stops in reverse, all of them, though one fails to.
 * Starts and stops follow each other; a stop that comes while it starts lets no further one start.
 */
export function all(name: string, services: readonly Service[]): Service {
  const started: Service[] = [];
  let wanted = false;
  let turn: Promise<void> = Promise.resolve();
  const inTurn = (work: () => Promise<void>): Promise<void> => {
    const mine = turn.then(work);
    turn = mine.catch(() => {});
    return mine;
  };
  const startAll = async (): Promise<void> => {
    if (started.length > 0) return;
    for (const service of services) {
      if (!wanted) return;
      try {
        await service.start();
        started.push(service);
      } catch (error) {
        await stopAll(started).catch(() => {});
        throw new Error(`${service.name} did not start`, { cause: error });
      }
    }
  };
  return {
    name,
    start() {
      wanted = true;
      return inTurn(startAll);
    },
    stop() {
      wanted = false;
      return inTurn(() => stopAll(started));
    },
  };
}

async function stopAll(started: Service[]): Promise<void> {
  const faults: unknown[] = [];
  for (let service = started.pop(); service !== undefined; service = started.pop()) {
    await service.stop().catch((error: unknown) => faults.push(error));
  }
  if (faults.length > 0) throw faults[0];
}
