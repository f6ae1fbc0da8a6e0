/**
 * Follows the output of one run. It
 * 1. reads the stream as it comes and notifies its listeners at most ten times a second;
 * 2. gives way to the page after every few milliseconds of work, however fast the bytes come;
 * 3. when the stream ends, asks whether the run has: if not, the server went away, and it reads on where it was;
 * 4. waits longer from try to try, until one brings something new; a refusal is final;
 * 5. stops reading when it has no listeners.
 */
import { CallFailed } from '../../../../src/http/client.ts';
import { LogStore } from './log-store.ts';

export type LogState = 'opening' | 'following' | 'complete' | 'lost' | 'refused';

/** The store is the same one all the time; a new snapshot says that there is more in it. */
export interface LogSnapshot {
  readonly state: LogState;
  readonly store: LogStore;
  /** Why it was refused. */
  readonly refusal?: CallFailed;
}

interface FollowerOptions {
  /** The output after its first `from` bytes. */
  readonly open: (signal: AbortSignal, from: number) => Promise<Response>;
  readonly hasEnded: () => Promise<boolean>;
  /** The first output has come: the run is under way. */
  readonly onFirstOutput: () => void;
}

const tellEveryMs = 100;
const giveWayAfterMs = 12;
const firstWaitMs = 500;
const longestWaitMs = 15_000;
/** To ask again later may help with these, as it does not with other refusals: too slow, too often. */
const passing: ReadonlySet<number> = new Set([408, 429]);

export class LogFollower {
  readonly #options: FollowerOptions;
  readonly #listeners = new Set<() => void>();
  #snapshot: LogSnapshot = { state: 'opening', store: new LogStore() };
  #telling: ReturnType<typeof setTimeout> | undefined;
  #abort: AbortController | undefined;

  constructor(options: FollowerOptions) {
    this.#options = options;
  }

  readonly snapshot = (): LogSnapshot => this.#snapshot;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    if (this.#abort === undefined && this.#snapshot.state !== 'complete') {
      this.#abort = new AbortController();
      void this.#follow(this.#abort.signal);
    }
    return () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size > 0) return;
      this.#abort?.abort();
      this.#abort = undefined;
    };
  };

  async #follow(signal: AbortSignal): Promise<void> {
    const { store } = this.#snapshot;
    let waitMs = firstWaitMs;
    while (!signal.aborted) {
      const known = store.bytes;
      try {
        await this.#read(signal);
        if (await this.#options.hasEnded()) return this.#become('complete', signal);
      } catch (error) {
        if (isRefusal(error)) return this.#become('refused', signal, error);
        this.#become('lost', signal);
      }
      if (store.bytes > known) waitMs = firstWaitMs;
      await pause(waitMs, signal);
      waitMs = Math.min(waitMs * 2, longestWaitMs);
    }
  }

  async #read(signal: AbortSignal): Promise<void> {
    const { store } = this.#snapshot;
    const response = await this.#options.open(signal, store.bytes);
    if (!response.ok || response.body === null) throw await failureOf(response);
    this.#become('following', signal);
    let workedSince = performance.now();
    for await (const chunk of chunksOf(response.body)) {
      if (signal.aborted) return;
      if (store.bytes === 0) this.#options.onFirstOutput();
      store.append(chunk);
      this.#telling ??= setTimeout(() => this.#tell(), tellEveryMs);
      if (performance.now() - workedSince < giveWayAfterMs) continue;
      await pause(0, signal);
      workedSince = performance.now();
    }
  }

  #become(state: LogState, signal: AbortSignal, refusal?: CallFailed): void {
    if (signal.aborted) return;
    const { store } = this.#snapshot;
    this.#snapshot = { state, store, ...(refusal === undefined ? {} : { refusal }) };
    this.#tell();
  }

  #tell(): void {
    clearTimeout(this.#telling);
    this.#telling = undefined;
    this.#snapshot = { ...this.#snapshot };
    for (const listener of this.#listeners) listener();
  }
}

function isRefusal(error: unknown): error is CallFailed {
  return error instanceof CallFailed && error.status >= 400 && error.status < 500 && !passing.has(error.status);
}

async function failureOf(response: Response): Promise<CallFailed> {
  const text = await response.text();
  try {
    return new CallFailed(response.status, JSON.parse(text) as CallFailed['problem'], text);
  } catch {
    return new CallFailed(response.status, undefined, text);
  }
}

/** A stream as an async iterable; Safari's streams are not. */
async function* chunksOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  const reader = stream.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    reader.releaseLock();
  }
}

/** Waits; an abort ends the wait early. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener('abort', end);
  });
}
