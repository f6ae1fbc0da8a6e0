/**
 * Life cycle: all background work is a `Service`, built from a loop, an interval or other services.
 *
 * 1. A service ends in two phases. First `quiet` is called on all services: they accept no new work. Then `stop` ends the work
 *    under way, by a deadline that is passed down, so that the parts together never take longer than the whole may.
 * 2. A service that has not stopped by the deadline is abandoned, and named in the error of the caller's `stop` (`NotStopped`).
 * 3. A loop never ends by itself: a failed pass is reported, and repeated after a growing pause.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { makeSerial } from './serial.ts';

export interface Service {
  readonly name: string;
  /** Returns once the service is running. May be called twice. */
  readonly start: () => Promise<void>;
  /** Accepts no new work from now on; work under way continues. Returns at once, and is followed by `stop`. */
  readonly quiet?: () => void;
  /**
   * Returns once all its work has ended. May be called twice. `deadlineMs` is a time of `performance.now()`, by which the
   * service abandons work that takes longer. Without it, the service takes as long as it needs.
   */
  readonly stop: (deadlineMs?: number) => Promise<void>;
}

/** A service that has a `quiet`. */
type Quietable = Required<Service>;

const noDeadline = Number.POSITIVE_INFINITY;

export function deadlineIn(ms: number): number {
  return performance.now() + ms;
}

/** Milliseconds until the deadline; never negative. */
export function leftUntil(deadlineMs: number): number {
  return Math.max(0, deadlineMs - performance.now());
}

/** The pause after a failed pass. `failures` counts the earlier failures since the last success. */
type PauseMs = (failures: number) => number;

/** 50 ms, then twice as long each time, up to `maxMs`. */
export function growingTo(maxMs: number): PauseMs {
  return (failures) => Math.min(maxMs, 50 * 2 ** Math.min(failures, 20));
}

/**
 * A service that repeats a pass for ever. The pass itself waits for work, and ends soon after its signal aborts. Every error
 * of a pass goes to `onError`, which logs it with a throttle. A quiet loop begins no further pass.
 */
export function loop(
  name: string,
  pass: (signal: AbortSignal) => Promise<void>,
  onError: (error: unknown) => void,
  pauseMs: PauseMs = growingTo(5_000),
): Quietable {
  let abort: AbortController | undefined;
  let running: Promise<void> | undefined;
  const handle = (error: unknown): void => {
    try {
      onError(error);
    } catch (fault) {
      process.emitWarning(`the error handler of the service ${name} failed: ${textOf(fault)}`);
    }
  };
  return {
    name,
    async start() {
      if (running) return;
      abort = new AbortController();
      running = repeat(abort.signal, pass, (error, failures) => {
        handle(error);
        return pauseMs(failures);
      });
    },
    quiet: () => abort?.abort(),
    async stop() {
      abort?.abort();
      await running;
      running = undefined;
    },
  };
}

/** `onFailure` handles the error, and returns the pause. */
async function repeat(
  signal: AbortSignal,
  pass: (signal: AbortSignal) => Promise<void>,
  onFailure: (error: unknown, failures: number) => number,
): Promise<void> {
  for (let failures = 0; !signal.aborted; ) {
    try {
      await pass(signal);
      failures = 0;
    } catch (error) {
      if (!signal.aborted) await pause(onFailure(error, failures++), signal);
    }
  }
}

/**
 * A service that calls `pass` at an interval, also after a failed pass. It has no `quiet`, because other services may need it
 * until they have stopped. The pass under way finishes before `stop` returns.
 */
export function every(
  intervalMs: number,
  name: string,
  pass: (signal: AbortSignal) => Promise<void>,
  onError: (error: unknown) => void,
): Service {
  const passAndPause = async (signal: AbortSignal): Promise<void> => {
    await pass(signal);
    await pause(intervalMs, signal);
  };
  const { start, stop } = loop(name, passAndPause, onError, () => intervalMs);
  return { name, start, stop };
}

/** Sleeps, or returns early when the signal aborts; never throws. */
export async function pause(ms: number, signal?: AbortSignal): Promise<void> {
  await sleep(ms, undefined, signal ? { signal } : {}).catch(() => {});
}

const maxTimerMs = 2 ** 31 - 1;

/** The result of the work, or undefined if it takes longer. The work is then abandoned, not interrupted. */
export function within<T>(ms: number, work: Promise<T>): Promise<T | undefined> {
  // on a hot path: 3 µs, while an AbortController and a promise of a timer took 100 µs
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, Math.min(ms, maxTimerMs), undefined);
    work.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

/** Services that did not stop: one sentence each, beginning with the path of the service, such as `up/api/listener`. */
class NotStopped extends Error {
  readonly sentences: readonly string[];

  constructor(sentences: readonly string[]) {
    super(sentences.join('; '));
    this.sentences = sentences;
  }
}

/**
 * Combines services of which each may need those before it. They start in order, and stop in reverse order once all are
 * quiet. If one fails to start, the started ones are stopped again. If one fails to stop by the deadline, the others are
 * stopped all the same. Calls of `start` and `stop` run one after the other; a `stop` during `start` starts no further service.
 */
export function all(name: string, services: readonly Service[]): Quietable {
  return compose(name, services, async (started, deadlineMs) => {
    const faults: string[] = [];
    for (const service of started.toReversed()) faults.push(...(await stopOne(service, deadlineMs)));
    return faults;
  });
}

/** As `all`, for services that do not need each other: they stop at the same time. */
export function together(name: string, services: readonly Service[]): Quietable {
  return compose(name, services, async (started, deadlineMs) => {
    const faults = await Promise.all(started.map((service) => stopOne(service, deadlineMs)));
    return faults.flat();
  });
}

/** The same service with an earlier deadline, to leave time for services that stop after it. */
export function endingEarlier(byMs: number, service: Service): Service {
  return {
    name: service.name,
    start: () => service.start(),
    quiet: () => service.quiet?.(),
    stop: (deadlineMs = noDeadline) => service.stop(deadlineMs - byMs),
  };
}

/** Stops all, and returns a sentence about each that did not stop. */
type StopAll = (started: readonly Service[], deadlineMs: number) => Promise<string[]>;

/** The part of a deadline that a composed service keeps for itself, to report its late parts. */
const namingMs = 20;
/** The time to stop the started services after another one failed to start. */
const undoMs = 10_000;

function compose(name: string, services: readonly Service[], stopAll: StopAll): Quietable {
  const started: Service[] = [];
  const inTurn = makeSerial();
  let isWanted = false;
  const stopStarted = async (deadlineMs: number): Promise<void> => {
    const stopping = started.splice(0);
    const faults = [...quietEach(stopping), ...(await stopAll(stopping, deadlineMs - namingMs))];
    if (faults.length > 0) throw new NotStopped(faults);
  };
  const startOne = async (service: Service): Promise<void> => {
    try {
      await service.start();
      started.push(service);
    } catch (error) {
      await stopStarted(deadlineIn(undoMs)).catch(() => {});
      throw new Error(`${service.name} did not start`, { cause: error });
    }
  };
  return {
    name,
    start() {
      isWanted = true;
      return inTurn(async () => {
        if (started.length > 0) return;
        for (const service of services) if (isWanted) await startOne(service);
      });
    },
    quiet: () => throwAny(quietEach(started)),
    stop(deadlineMs = noDeadline) {
      isWanted = false;
      return inTurn(() => stopStarted(deadlineMs));
    },
  };
}

function throwAny(faults: readonly string[]): void {
  if (faults.length > 0) throw new NotStopped(faults);
}

function quietEach(services: readonly Service[]): string[] {
  return services.flatMap((service) => {
    try {
      service.quiet?.();
      return [];
    } catch (error) {
      return describeFault(service, error);
    }
  });
}

/** Stops a service by the deadline, or abandons it. Returns a sentence about each part that did not stop. Never rejects. */
export async function stopOne(service: Service, deadlineMs: number): Promise<readonly string[]> {
  try {
    const isStopped = await within(
      leftUntil(deadlineMs),
      service.stop(deadlineMs).then(() => true),
    );
    return isStopped ? [] : [`${service.name} did not stop in time and is abandoned`];
  } catch (error) {
    return describeFault(service, error);
  }
}

function describeFault({ name }: Service, error: unknown): string[] {
  if (error instanceof NotStopped) return error.sentences.map((sentence) => `${name}/${sentence}`);
  return [`${name} failed to stop: ${textOf(error)}`];
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
