/**
 * Ends this process if its event loop is blocked: if the main thread has used its limit of processor time without
 * returning to the loop. A second thread watches it, because a blocked loop cannot watch itself.
 *
 * The limit is processor time, not elapsed time: on an overloaded machine a healthy process may get no processor for seconds,
 * and ending it would make that worse. The process ends by SIGVTALRM, the signal for used-up processor time, so that its
 * parent can distinguish this end from all others.
 */
import { Worker } from 'node:worker_threads';
import { parseProcessStat } from './process-stat.ts';

export const blockedSignal = 'SIGVTALRM';

export interface LoopWatchdogOptions {
  /** Processor time, in milliseconds, that the main thread may use without returning to its loop. */
  readonly limitMs: number;
  /** Written to standard error before the process ends. */
  readonly lastWords: string;
}

/** The interval at which the main thread counts a tick, and the other thread reads the count. A tick costs some 20 µs. */
const tickEveryMs = 50;

/** Indexes of the numbers that both threads share. */
const tickAt = 0;
const limitAt = 1;

interface Watched {
  /** The number of ticks of the main thread, and the limit in milliseconds. */
  readonly shared: Int32Array;
  readonly everyMs: number;
  readonly lastWords: string;
  readonly signal: string;
}

export class LoopWatchdog {
  readonly #worker: Worker;
  readonly #timer: NodeJS.Timeout;
  readonly #shared = new Int32Array(new SharedArrayBuffer(2 * Int32Array.BYTES_PER_ELEMENT));

  constructor({ limitMs, lastWords }: LoopWatchdogOptions) {
    this.limit(limitMs);
    this.#timer = setInterval(() => Atomics.add(this.#shared, tickAt, 1), tickEveryMs).unref();
    const workerData: Watched = { shared: this.#shared, everyMs: tickEveryMs, lastWords, signal: blockedSignal };
    const program = `(${watchTicks.toString()})(require('node:worker_threads').workerData, ${parseProcessStat.toString()})`;
    this.#worker = new Worker(program, { eval: true, workerData });
    this.#worker.unref();
  }

  /** Sets another limit, in milliseconds of processor time. */
  limit(limitMs: number): void {
    Atomics.store(this.#shared, limitAt, limitMs);
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#worker.terminate();
  }
}

/** The code of the thread. It is passed as text, so it cannot use anything outside of itself. */
function watchTicks({ shared, everyMs, lastWords, signal }: Watched, parseStat: typeof parseProcessStat): void {
  const fs = process.getBuiltinModule('node:fs');
  /** The processor time of the main thread on Linux. On other systems: of all threads. */
  const readUsedMs = (): number => {
    try {
      const stat = parseStat(fs.readFileSync(`/proc/self/task/${process.pid}/stat`, 'latin1'));
      if (stat !== undefined) return stat.processorMs;
    } catch {
      // not Linux
    }
    const { user, system } = process.cpuUsage();
    return (user + system) / 1_000;
  };
  let last = Atomics.load(shared, 0);
  let usedBefore: number | undefined;
  setInterval(() => {
    const now = Atomics.load(shared, 0);
    const used = now === last ? readUsedMs() : undefined;
    last = now;
    usedBefore = used === undefined ? undefined : (usedBefore ?? used);
    if (used === undefined || usedBefore === undefined || used - usedBefore < Atomics.load(shared, 1)) return;
    try {
      fs.writeSync(2, lastWords);
    } catch {
      // standard error is closed
    }
    process.kill(process.pid, signal);
  }, everyMs);
}
