/**
 * Follows the output of one run. It
 * 1. reads the stream as it comes and tells its listeners at most ten times a second;
 * 2. when the stream ends, asks whether the run has: if not, the server went away, and it reads again from the start;
 * 3. stops reading when nobody listens any more.
 */
import { append, type LogText, noText } from './log-text.ts';

export type LogState = 'opening' | 'following' | 'complete' | 'lost';

export interface LogSnapshot {
  readonly state: LogState;
  readonly text: LogText;
}

interface FollowerOptions {
  readonly open: (signal: AbortSignal) => Promise<Response>;
  readonly hasEnded: () => Promise<boolean>;
  /** The first output has come: the run is under way. */
  readonly onFirstOutput: () => void;
}

const tellEveryMs = 100;
const longestWaitMs = 15_000;

export class LogFollower {
  readonly #options: FollowerOptions;
  readonly #listeners = new Set<() => void>();
  #snapshot: LogSnapshot = { state: 'opening', text: noText };
  #text = noText;
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
    for (let waitMs = 500; !signal.aborted; waitMs = Math.min(waitMs * 2, longestWaitMs)) {
      try {
        await this.#read(signal);
        if (await this.#options.hasEnded()) return this.#become('complete', signal);
      } catch {
        this.#become('lost', signal);
      }
      await pause(waitMs, signal);
    }
  }

  async #read(signal: AbortSignal): Promise<void> {
    const response = await this.#options.open(signal);
    if (!response.ok || response.body === null) throw new Error(`the log answers ${response.status}`);
    this.#text = noText;
    this.#become('following', signal);
    for await (const chunk of chunksOf(response.body.pipeThrough(new TextDecoderStream()))) {
      if (this.#text === noText) this.#options.onFirstOutput();
      this.#text = append(this.#text, chunk);
      this.#telling ??= setTimeout(() => this.#tell(), tellEveryMs);
    }
  }

  #become(state: LogState, signal: AbortSignal): void {
    if (signal.aborted) return;
    this.#snapshot = { ...this.#snapshot, state };
    this.#tell();
  }

  #tell(): void {
    clearTimeout(this.#telling);
    this.#telling = undefined;
    this.#snapshot = { ...this.#snapshot, text: this.#text };
    for (const listener of this.#listeners) listener();
  }
}

/** A stream as an async iterable; Safari's streams are not. */
async function* chunksOf(stream: ReadableStream<string>): AsyncGenerator<string> {
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
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
