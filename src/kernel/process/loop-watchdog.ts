/**
 * Ends this process when its event loop is blocked: when the main thread has used a limit of processor time without coming
 * back to its loop. A thread watches it, because a blocked loop cannot watch itself.
 *
 * Processor time, and not time: on an overloaded machine a healthy process gets no processor for seconds, and ending it
 * would make that worse. The process ends by SIGVTALRM, the signal for a used-up allowance of processor time, so that its
 * parent can tell this end from all others.
 */
import { Worker } from 'node:worker_threads';
import { parseProcessStat } from './process-stat.ts';

export const blockedSignal = 'SIGVTALRM';

export interface LoopWatchdogOptions {
  /** Processor time, in milliseconds, that the main thread may use without coming back to its loop. */
  readonly limitMs: number;
  /** Written to standard error before the process ends. */
  readonly lastWords: string;
}

/** How often the main thread counts a tick, and the other thread reads the count. A tick costs some 20 µs. */
const tickEveryMs = 50;

/** Places in the numbers that both threads share. */
const tickAt = 0;
const limitAt = 1;

interface Watched {
  /** How many ticks the main thread has counted, and the limit in milliseconds. */
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

  /** Another limit, in milliseconds of processor time. */
  limit(limitMs: number): void {
    Atomics.store(this.#shared, limitAt, limitMs);
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#worker.terminate();
  }
}

/** The thread. It is handed over as text: nothing outside of it exists there. */
function watchTicks({ shared, everyMs, lastWords, signal }: Watched, parseStat: typeof parseProcessStat): void {
  const fs = process.getBuiltinModule('node:fs');
  /** Of the main thread on Linux. Other systems do not say: there, of all threads. */
  const readUsedMs = (): number => {
    try {
      const stat = parseStat(fs.readFileSync(`/proc/self/task/${process.pid}/stat`, 'latin1'));
      if (stat !== undefined) return stat.processorMs;
    } catch {
      // no such file
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
      // standard error takes no more
    }
    process.kill(process.pid, signal);
  }, everyMs);
}
