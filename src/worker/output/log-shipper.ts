/**
 * Sends the output of a tenant's runs to the API (`log-shippers.ts` has one shipper for each tenant), in batches across runs: every
 * 100 ms, or sooner if 64 KB are pending or a run is about to be reported.
 *
 * 1. The order within a run is kept: chunks are numbered as they are sent, and only one request is under way.
 * 2. Memory is limited: a run with too much unsent output waits, and so does every run while all together have too much. But a
 *    task does not wait for an unreachable API: then far more output is buffered. Output beyond that limit is dropped, and a
 *    line in its place says how much.
 * 3. When `close` has resolved, all output of the run has been acknowledged (or abandoned).
 * 4. A request that the API rejects permanently is dropped and logged as an error; the run continues.
 */
import type { HeldRun, LogChunk } from '../../contract/wire.ts';
import type { Output, StreamName } from '../../runtimes/contract.ts';

export interface LogShipperOptions {
  /** Resolves once the API has the chunks; retries without a limit. */
  send(chunks: LogChunk[], signal: AbortSignal): Promise<void>;
  now(): number;
  onDropped(error: unknown, chunks: number): void;
  readonly intervalMs?: number;
  /** The limit of one run's unsent output. */
  readonly runBytes?: number;
  /** The limit of all runs together, beyond which each waits for its own output. */
  readonly totalBytes?: number;
  /** After this time without an answer, the API counts as unreachable. */
  readonly awayAfterMs?: number;
  /** The limits of one run, and of all runs, while the API is unreachable. */
  readonly awayRunBytes?: number;
  readonly awayTotalBytes?: number;
  /** The unsent output of all shippers of a worker, which limits the buffers while some tenants are unavailable. */
  readonly unshipped?: Unshipped;
}

export interface Unshipped {
  bytes: number;
}

/** The output of one run within the shipper. */
export interface Shipment extends Output {
  close(): Promise<void>;
  /** The output is no longer needed. */
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
  /** Bytes that are queued or under way. */
  bytes: number;
  number: number;
  /** Bytes that were dropped after all queued output. */
  droppedBytes: number;
  abandoned: boolean;
  waiters: Waiter[];
}

interface Waiter {
  readonly belowBytes: number;
  /** Does not wait for an unreachable API. */
  readonly impatient: boolean;
  resolve(): void;
}

const chunkBytes = 64 * 1024;
const requestBytes = 512 * 1024;
const requestChunks = 1_000;

export class LogShipper {
  readonly #options: LogShipperOptions;
  readonly #intervalMs: number;
  readonly #runBytes: number;
  readonly #totalBytes: number;
  readonly #awayAfterMs: number;
  readonly #awayRunBytes: number;
  readonly #awayTotalBytes: number;
  readonly #dirty = new Set<Source>();
  readonly #waiting = new Set<Source>();
  readonly #stop = new AbortController();
  readonly #unshipped: Unshipped;
  #bytes = 0;
  #underWay = false;
  #away = false;
  #urgent = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: LogShipperOptions) {
    this.#options = options;
    this.#intervalMs = options.intervalMs ?? 100;
    this.#runBytes = options.runBytes ?? 256 * 1024;
    this.#totalBytes = options.totalBytes ?? 8 * 1024 * 1024;
    this.#awayAfterMs = options.awayAfterMs ?? 5_000;
    this.#awayRunBytes = options.awayRunBytes ?? 10 * 1024 * 1024;
    this.#awayTotalBytes = options.awayTotalBytes ?? 64 * 1024 * 1024;
    this.#unshipped = options.unshipped ?? { bytes: 0 };
  }

  open({ tenant, run, lease }: HeldRun): Shipment {
    const source: Source = {
      run: { tenant, run, lease },
      queue: [],
      bytes: 0,
      number: 0,
      droppedBytes: 0,
      abandoned: false,
      waiters: [],
    };
    return {
      write: (stream, data) => this.#write(source, stream, data),
      close: () => this.#close(source),
      abandon: () => this.#abandon(source),
    };
  }

  /** Abandons the remaining output; every wait ends. */
  stop(): void {
    this.#stop.abort();
    clearTimeout(this.#timer);
    for (const source of new Set([...this.#dirty, ...this.#waiting])) this.#abandon(source);
  }

  #write(source: Source, stream: StreamName, data: Buffer): Promise<void> | undefined {
    if (source.abandoned || this.#stop.signal.aborted || data.length === 0) return undefined;
    if (this.#mustDrop(source, data.length)) {
      source.droppedBytes += data.length;
      return undefined;
    }
    this.#noteDropped(source);
    for (let at = 0; at < data.length; at += chunkBytes) {
      this.#append(source, stream, data.subarray(at, at + chunkBytes));
    }
    if (this.#away || source.bytes <= this.#allowance()) return undefined;
    return this.#wait(source, { belowBytes: this.#allowance() / 2, impatient: true });
  }

  #mustDrop(source: Source, bytes: number): boolean {
    if (!this.#away) return false;
    return source.bytes + bytes > this.#awayRunBytes || this.#unshipped.bytes + bytes > this.#awayTotalBytes;
  }

  #noteDropped(source: Source): void {
    if (source.droppedBytes === 0) return;
    const line = `\n[millrace] ${source.droppedBytes} bytes were lost here: the API did not answer\n`;
    source.droppedBytes = 0;
    this.#append(source, 'err', Buffer.from(line));
  }

  #append(source: Source, stream: StreamName, data: Buffer): void {
    const last = source.queue.at(-1);
    if (last?.stream === stream && last.bytes + data.length <= chunkBytes) {
      last.parts.push(data);
      last.bytes += data.length;
    } else {
      source.queue.push({ stream, atMs: this.#options.now(), parts: [data], bytes: data.length });
    }
    this.#count(source, data.length);
    this.#dirty.add(source);
    this.#schedule();
  }

  #count(source: Source, bytes: number): void {
    source.bytes += bytes;
    this.#bytes += bytes;
    this.#unshipped.bytes += bytes;
  }

  #allowance(): number {
    return this.#bytes > this.#totalBytes ? 0 : this.#runBytes;
  }

  async #close(source: Source): Promise<void> {
    if (source.abandoned || this.#stop.signal.aborted) return;
    this.#noteDropped(source);
    if (source.bytes === 0) return;
    this.#urgent = true;
    this.#schedule();
    await this.#wait(source, { belowBytes: 0, impatient: false });
  }

  #wait(source: Source, how: { belowBytes: number; impatient: boolean }): Promise<void> {
    this.#waiting.add(source);
    return new Promise((resolve) => source.waiters.push({ ...how, resolve }));
  }

  #abandon(source: Source): void {
    source.abandoned = true;
    const queued = source.queue.splice(0).reduce((sum, piece) => sum + piece.bytes, 0);
    this.#count(source, -queued);
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
      // output that is written or closed in the same turn is sent along
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
    const patience = setTimeout(() => this.#giveUpWaiting(), this.#awayAfterMs);
    try {
      const chunks = batch.map((item) => item.chunk);
      if (chunks.length > 0) await this.#options.send(chunks, this.#stop.signal);
    } catch (error) {
      if (!this.#stop.signal.aborted) this.#options.onDropped(error, batch.length);
    }
    clearTimeout(patience);
    this.#away = false;
    for (const { source, bytes } of batch) this.#count(source, -bytes);
    this.#release((waiter, source) => source.bytes <= waiter.belowBytes);
    this.#underWay = false;
    this.#schedule();
  }

  #giveUpWaiting(): void {
    this.#away = true;
    this.#release((waiter) => waiter.impatient);
  }

  /** Takes one chunk of each run in turn, until the request is full. */
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
      if (source.queue.length > 0) this.#dirty.add(source); // visited again after the others
    }
    return batch;
  }

  #release(isReady: (waiter: Waiter, source: Source) => boolean): void {
    for (const source of this.#waiting) {
      const [ready, waiting] = partition(source.waiters, (waiter) => isReady(waiter, source));
      source.waiters = waiting;
      if (waiting.length === 0) this.#waiting.delete(source);
      for (const waiter of ready) waiter.resolve();
    }
  }
}

function chunkOf(source: Source, piece: Pending): LogChunk {
  const { tenant, run, lease } = source.run;
  const data = Buffer.concat(piece.parts).toString('base64');
  const at = new Date(piece.atMs).toISOString();
  return { tenant, run, lease, number: source.number++, stream: piece.stream, at, data };
}

function partition<T>(items: readonly T[], first: (item: T) => boolean): [T[], T[]] {
  const yes: T[] = [];
  const no: T[] = [];
  for (const item of items) (first(item) ? yes : no).push(item);
  return [yes, no];
}
