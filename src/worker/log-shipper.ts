/**
 * Ships the output of all runs to the API: in batches across runs, at most every 100 ms unless 64 KB have come together
 * or a run is about to be reported.
 *
 * 1. Per run the order is kept: pieces are numbered as they leave, and only one request is under way.
 * 2. Memory is bounded: a run with too much unshipped, or any run while all together have too much, must wait.
 * 3. When `close` has resolved, everything the run wrote has been acknowledged (or is of no use to anybody).
 * 4. A request that the API will never take is dropped with an error in the log; the run goes on.
 */
import type { HeldRun, LogChunk } from '../contract/wire.ts';
import type { Output, StreamName } from '../runtimes/contract.ts';

export interface LogShipperOptions {
  /** Resolves once the API has the chunks; tries for as long as it takes. */
  send(chunks: LogChunk[], signal: AbortSignal): Promise<void>;
  now(): number;
  onDropped(error: unknown, chunks: number): void;
  readonly intervalMs?: number;
  /** What one run may have unshipped. */
  readonly runBytes?: number;
  /** What all runs together may have before each has to wait for its own. */
  readonly totalBytes?: number;
}

/** One run's way into the shipper. */
export interface Shipment extends Output {
  close(): Promise<void>;
  /** Nobody wants this output any more. */
  abandon(): void;
}

interface Pending {
  readonly stream: StreamName;
  readonly atMs: number;
  readonly parts: Buffer[];
  bytes: number;
}

interface Source {
  readonly run: HeldRun;
  readonly queue: Pending[];
  /** Queued and under way. */
  bytes: number;
  number: number;
  abandoned: boolean;
  waiters: { readonly belowBytes: number; resolve(): void }[];
}

const chunkBytes = 64 * 1024;
const requestBytes = 512 * 1024;
const requestChunks = 1_000;

export class LogShipper {
  readonly #options: LogShipperOptions;
  readonly #intervalMs: number;
  readonly #runBytes: number;
  readonly #totalBytes: number;
  readonly #dirty = new Set<Source>();
  readonly #waiting = new Set<Source>();
  readonly #stop = new AbortController();
  #bytes = 0;
  #underWay = false;
  #urgent = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: LogShipperOptions) {
    this.#options = options;
    this.#intervalMs = options.intervalMs ?? 100;
    this.#runBytes = options.runBytes ?? 256 * 1024;
    this.#totalBytes = options.totalBytes ?? 8 * 1024 * 1024;
  }

  open({ tenant, run, lease }: HeldRun): Shipment {
    const source: Source = {
      run: { tenant, run, lease },
      queue: [],
      bytes: 0,
      number: 0,
      abandoned: false,
      waiters: [],
    };
    return {
      write: (stream, data) => this.#write(source, stream, data),
      close: () => this.#close(source),
      abandon: () => this.#abandon(source),
    };
  }

  /** Gives up what is left; every wait ends. */
  stop(): void {
    this.#stop.abort();
    clearTimeout(this.#timer);
    for (const source of new Set([...this.#dirty, ...this.#waiting])) this.#abandon(source);
  }

  #write(source: Source, stream: StreamName, data: Buffer): Promise<void> | undefined {
    if (source.abandoned || this.#stop.signal.aborted || data.length === 0) return undefined;
    for (let at = 0; at < data.length; at += chunkBytes) {
      this.#append(source, stream, data.subarray(at, at + chunkBytes));
    }
    this.#dirty.add(source);
    this.#schedule();
    if (source.bytes <= this.#allowance()) return undefined;
    return this.#wait(source, this.#allowance() / 2);
  }

  #append(source: Source, stream: StreamName, data: Buffer): void {
    const last = source.queue.at(-1);
    if (last?.stream === stream && last.bytes + data.length <= chunkBytes) {
      last.parts.push(data);
      last.bytes += data.length;
    } else {
      source.queue.push({ stream, atMs: this.#options.now(), parts: [data], bytes: data.length });
    }
    source.bytes += data.length;
    this.#bytes += data.length;
  }

  #allowance(): number {
    return this.#bytes > this.#totalBytes ? 0 : this.#runBytes;
  }

  async #close(source: Source): Promise<void> {
    if (source.bytes === 0 || source.abandoned) return;
    this.#urgent = true;
    this.#schedule();
    await this.#wait(source, 0);
  }

  #wait(source: Source, belowBytes: number): Promise<void> {
    this.#waiting.add(source);
    return new Promise((resolve) => source.waiters.push({ belowBytes, resolve }));
  }

  #abandon(source: Source): void {
    source.abandoned = true;
    const queued = source.queue.splice(0).reduce((sum, piece) => sum + piece.bytes, 0);
    source.bytes -= queued;
    this.#bytes -= queued;
    this.#dirty.delete(source);
    this.#waiting.delete(source);
    for (const waiter of source.waiters.splice(0)) waiter.resolve();
  }

  #schedule(): void {
    if (this.#underWay || this.#dirty.size === 0 || this.#stop.signal.aborted) return;
    if (this.#urgent || this.#bytes >= chunkBytes) {
      clearTimeout(this.#timer);
      this.#timer = undefined;
      this.#underWay = true;
      // what else is written or closed in this turn goes along
      setImmediate(() => void this.#ship());
    } else {
      this.#timer ??= setTimeout(() => {
        this.#timer = undefined;
        this.#urgent = true;
        this.#schedule();
      }, this.#intervalMs);
    }
  }

  async #ship(): Promise<void> {
    const batch = this.#take();
    this.#urgent = [...this.#dirty].some((source) => source.waiters.length > 0);
    try {
      const { signal } = this.#stop;
      if (batch.length > 0)
        await this.#options.send(
          batch.map((item) => item.chunk),
          signal,
        );
    } catch (error) {
      if (!this.#stop.signal.aborted) this.#options.onDropped(error, batch.length);
    }
    for (const { source, bytes } of batch) {
      source.bytes -= bytes;
      this.#bytes -= bytes;
    }
    this.#release();
    this.#underWay = false;
    this.#schedule();
  }

  /** One piece of each run in turn, until the request is full. */
  #take(): { source: Source; bytes: number; chunk: LogChunk }[] {
    const batch: { source: Source; bytes: number; chunk: LogChunk }[] = [];
    let bytes = 0;
    for (const source of this.#dirty) {
      if (bytes >= requestBytes || batch.length >= requestChunks) break;
      this.#dirty.delete(source);
      const piece = source.queue.shift();
      if (!piece) continue;
      bytes += piece.bytes;
      batch.push({ source, bytes: piece.bytes, chunk: chunkOf(source, piece) });
      if (source.queue.length > 0) this.#dirty.add(source); // visited again, after the others
    }
    return batch;
  }

  #release(): void {
    for (const source of this.#waiting) {
      const [ready, waiting] = partition(source.waiters, (waiter) => source.bytes <= waiter.belowBytes);
      source.waiters = waiting;
      if (waiting.length === 0) this.#waiting.delete(source);
      for (const waiter of ready) waiter.resolve();
    }
  }
}

function chunkOf(source: Source, piece: Pending): LogChunk {
  const data = Buffer.concat(piece.parts).toString('base64');
  return { ...source.run, number: source.number++, stream: piece.stream, at: new Date(piece.atMs).toISOString(), data };
}

function partition<T>(items: readonly T[], first: (item: T) => boolean): [T[], T[]] {
  const yes: T[] = [];
  const no: T[] = [];
  for (const item of items) (first(item) ? yes : no).push(item);
  return [yes, no];
}
