/**
 * Ends this process when its event loop is blocked: when the main thread has used `limitMs` of processor time without
 * coming back to its loop. A thread watches it, because a blocked loop cannot watch itself.
 *
 * Processor time, and not time: on an overloaded machine a healthy process gets no processor for seconds, and ending it
 * would make that worse. The process ends by SIGVTALRM, the signal for a used-up allowance of processor time, so that its
 * parent can tell this end from all others.
 */
import { Worker } from 'node:worker_threads';

export const blockedSignal = 'SIGVTALRM';

export interface LoopWatchdogOptions {
  /** Processor time, in milliseconds, that the main thread may use without coming back to its loop. */
  readonly limitMs: number;
  /** Written to standard error before the process ends. */
  readonly lastWords: string;
}

/** How often the main thread says that it lives, and the other looks. A tick costs some 20 µs. */
const tickEveryMs = 100;

interface Watched extends LoopWatchdogOptions {
  /** One number, which the main thread counts up with every tick. */
  readonly ticks: Int32Array;
  readonly everyMs: number;
  readonly signal: string;
}

export class LoopWatchdog {
  readonly #worker: Worker;
  readonly #timer: NodeJS.Timeout;

  constructor(options: LoopWatchdogOptions) {
    const ticks = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
    this.#timer = setInterval(() => Atomics.add(ticks, 0, 1), tickEveryMs).unref();
    const workerData: Watched = { ...options, ticks, everyMs: tickEveryMs, signal: blockedSignal };
    this.#worker = new Worker(`(${watchTicks.toString()})(require('node:worker_threads').workerData)`, {
      eval: true,
      workerData,
    });
    this.#worker.unref();
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#worker.terminate();
  }
}

/** The thread. It is handed over as text: nothing outside of it exists there. */
function watchTicks({ ticks, everyMs, limitMs, lastWords, signal }: Watched): void {
  const fs = process.getBuiltinModule('node:fs');
  const msPerClockTick = 10;
  /** Of the main thread; where the system does not say, of the process. The 14th and 15th field; the second may hold anything. */
  const usedMs = (): number => {
    try {
      const stat = fs.readFileSync(`/proc/self/task/${process.pid}/stat`, 'utf8');
      const fields = stat.slice(stat.lastIndexOf(')')).split(' ');
      return (Number(fields[12]) + Number(fields[13])) * msPerClockTick;
    } catch {
      const { user, system } = process.cpuUsage();
      return (user + system) / 1_000;
    }
  };
  let last = Atomics.load(ticks, 0);
  let usedBefore: number | undefined;
  setInterval(() => {
    const now = Atomics.load(ticks, 0);
    const used = now === last ? usedMs() : undefined;
    last = now;
    usedBefore = used === undefined ? undefined : (usedBefore ?? used);
    if (used === undefined || usedBefore === undefined || used - usedBefore < limitMs) return;
    try {
      fs.writeSync(2, lastWords);
    } catch {
      // standard error takes no more
    }
    process.kill(process.pid, signal);
  }, everyMs);
}
