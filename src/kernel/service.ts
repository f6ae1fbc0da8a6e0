/**
 * Life cycle: everything that runs in the background is a `Service`, made of a loop, an interval or other services.
 *
 * 1. A service ends in two phases. `quiet` of everything comes first: no new work is taken on. `stop` then ends what is under
 *    way, by a deadline that is handed down, so that the parts together never take longer than the whole may.
 * 2. A service that has not stopped by the deadline is abandoned, and named in the error of whoever stopped it (`NotStopped`).
 * 3. A loop never ends by itself: a pass that fails is reported, and tried again after a growing pause.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { makeSerial } from './serial.ts';

export interface Service {
  readonly name: string;
  /** Returns once it is running. May be called twice. */
  readonly start: () => Promise<void>;
  /** Takes on no new work from now on; work under way goes on. Returns at once, and is followed by `stop`. */
  readonly quiet?: () => void;
  /**
   * Returns once nothing of it is left. May be called twice. `deadlineMs` is a time of `performance.now()`: a service
   * gives up by then whatever could take longer. Without it, a service takes the time that it needs.
   */
  readonly stop: (deadlineMs?: number) => Promise<void>;
}

/** A service that can be made quiet. */
type Quietable = Required<Service>;

const noDeadline = Number.POSITIVE_INFINITY;

export function deadlineIn(ms: number): number {
  return performance.now() + ms;
}

/** Milliseconds until the deadline; never negative. */
export function leftUntil(deadlineMs: number): number {
  return Math.max(0, deadlineMs - performance.now());
}

/** How long to pause after a pass that failed; `failures` counts those before it since the last success. */
type PauseMs = (failures: number) => number;

/** 50 ms, then twice as long each time, up to `maxMs`. */
export function growingTo(maxMs: number): PauseMs {
  return (failures) => Math.min(maxMs, 50 * 2 ** Math.min(failures, 20));
}

/**
 * A service that repeats a pass for ever. A pass waits by itself for something to do, and ends soon after its signal aborts.
 * Every error of a pass goes to `onError`, which logs it with a throttle. Quiet, the loop begins no further pass.
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

/** `onFailure` handles the error, and says how long to pause. */
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
 * A service that does one thing at an interval, also after a pass that failed. It goes on until its own `stop`, because other
 * services may need it until they have stopped. The pass under way finishes before `stop` returns.
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

/** The result of the work, or undefined when there is none in time; the work is abandoned then, not interrupted. */
export function within<T>(ms: number, work: Promise<T>): Promise<T | undefined> {
  // on a hot path: 3 µs, where an AbortController and a promise of a timer took 100
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, Math.min(ms, maxTimerMs), undefined);
    work.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

/** Services that did not stop: one sentence each, which begins with the service's path, such as `up/api/listener`. */
class NotStopped extends Error {
  readonly sentences: readonly string[];

  constructor(sentences: readonly string[]) {
    super(sentences.join('; '));
    this.sentences = sentences;
  }
}

/**
 * Several services as one, of which each may need those before it: they start in order, and stop in reverse order once all
 * are quiet. If one fails to start, those already started are stopped again. If one fails to stop, or not by the deadline,
 * the others are stopped all the same. Starts and stops follow each other; a stop during the start lets no further one start.
 */
export function all(name: string, services: readonly Service[]): Quietable {
  return compose(name, services, async (started, deadlineMs) => {
    const faults: string[] = [];
    for (const service of started.toReversed()) faults.push(...(await stopOne(service, deadlineMs)));
    return faults;
  });
}

/** The same for services that do not need each other to stop: they stop at the same time. */
export function together(name: string, services: readonly Service[]): Quietable {
  return compose(name, services, async (started, deadlineMs) => {
    const faults = await Promise.all(started.map((service) => stopOne(service, deadlineMs)));
    return faults.flat();
  });
}

/** The same service, which ends sooner: time is left for those that stop after it. */
export function endingEarlier(byMs: number, service: Service): Service {
  return {
    name: service.name,
    start: () => service.start(),
    quiet: () => service.quiet?.(),
    stop: (deadlineMs = noDeadline) => service.stop(deadlineMs - byMs),
  };
}

/** Stops each, and returns a sentence about each that did not stop. */
type StopAll = (started: readonly Service[], deadlineMs: number) => Promise<string[]>;

/** Kept of a deadline by whoever stops others, to name those that are late. */
const namingMs = 20;
/** For those that were started before one that failed to start. */
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
