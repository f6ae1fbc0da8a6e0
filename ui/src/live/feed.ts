/**
 * The feed is this tab's one connection to the event log. It
 * 1. resumes where it stopped: the browser by `Last-Event-ID`, a connection of ours by `after`;
 * 2. opens anew, with a growing wait, when the browser has given up (it does at any answer but 200);
 * 3. keeps the newest events, at most `kept`, newest first;
 * 4. tells its listeners at most four times a second, however many events come.
 */
import { type LiveEvent, readEvent } from './event.ts';

export type FeedState = 'connecting' | 'live' | 'lost';

export interface FeedSnapshot {
  readonly state: FeedState;
  readonly events: readonly LiveEvent[];
}

interface FeedOptions {
  readonly url: (after: number | undefined) => string;
  readonly onEvent: (event: LiveEvent) => void;
  /** Connected: whatever was read before may have missed a change. */
  readonly onOpen: () => void;
  /** The server answered, but not with a stream; perhaps the session has ended. */
  readonly onRefused: () => void;
}

export const kept = 500;
const tellEveryMs = 250;
const firstWaitMs = 1_000;
const longestWaitMs = 15_000;

export class Feed {
  readonly #options: FeedOptions;
  readonly #listeners = new Set<() => void>();
  #snapshot: FeedSnapshot = { state: 'connecting', events: [] };
  #arrived: LiveEvent[] = [];
  #lastSeq: number | undefined;
  #waitMs = firstWaitMs;
  #source: EventSource | undefined;
  #reopening: ReturnType<typeof setTimeout> | undefined;
  #telling: ReturnType<typeof setTimeout> | undefined;

  constructor(options: FeedOptions) {
    this.#options = options;
  }

  start(): void {
    if (this.#source !== undefined) return;
    const source = new EventSource(this.#options.url(this.#lastSeq));
    source.addEventListener('open', () => this.#opened());
    source.addEventListener('message', (message: MessageEvent<string>) => this.#receive(message));
    source.addEventListener('error', () => this.#failed(source));
    this.#source = source;
  }

  stop(): void {
    clearTimeout(this.#reopening);
    clearTimeout(this.#telling);
    this.#telling = undefined;
    this.#source?.close();
    this.#source = undefined;
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  readonly snapshot = (): FeedSnapshot => this.#snapshot;

  #opened(): void {
    this.#waitMs = firstWaitMs;
    this.#become('live');
    this.#options.onOpen();
  }

  #receive(message: MessageEvent<string>): void {
    const event = readEvent(message.lastEventId, message.data);
    if (event === undefined || event.seq <= (this.#lastSeq ?? -1)) return;
    this.#lastSeq = event.seq;
    this.#arrived.push(event);
    if (this.#arrived.length > kept) this.#arrived.shift();
    this.#telling ??= setTimeout(() => this.#tell(), tellEveryMs);
    this.#options.onEvent(event);
  }

  #failed(source: EventSource): void {
    this.#become('lost');
    if (source.readyState !== EventSource.CLOSED) return;
    this.#source = undefined;
    this.#options.onRefused();
    this.#reopening = setTimeout(() => this.start(), this.#waitMs * (0.75 + Math.random() / 2));
    this.#waitMs = Math.min(this.#waitMs * 2, longestWaitMs);
  }

  #become(state: FeedState): void {
    if (state === this.#snapshot.state) return;
    this.#snapshot = { ...this.#snapshot, state };
    for (const listener of this.#listeners) listener();
  }

  #tell(): void {
    this.#telling = undefined;
    const events = [...this.#arrived.toReversed(), ...this.#snapshot.events].slice(0, kept);
    this.#arrived = [];
    this.#snapshot = { ...this.#snapshot, events };
    for (const listener of this.#listeners) listener();
  }
}
