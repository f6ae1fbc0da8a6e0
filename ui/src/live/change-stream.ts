/**
 * The one connection to the stream of changes. It
 * 1. resumes where it stopped: the browser by `Last-Event-ID`, a connection of ours by `after`;
 * 2. reconnects, after a growing wait, when the browser has given up (it does at any answer but 200).
 *
 * It runs in the worker that all tabs share, or in the tab itself if the browser has no shared workers.
 */
import type { DigestMessage } from '../../../src/api/live/digest.ts';

export type LiveState = 'connecting' | 'live' | 'lost';

/** The messages to tabs. */
export type Told =
  | { readonly kind: 'state'; readonly state: LiveState }
  /** Everything up to here is known, and this has changed. */
  | { readonly kind: 'digest'; readonly digest: DigestMessage }
  /** The server answered, but not with a stream; perhaps the session has ended. */
  | { readonly kind: 'refused' };

const firstWaitMs = 500;
const longestWaitMs = 15_000;

export class ChangeStream {
  readonly #url: string;
  readonly #tell: (told: Told) => void;
  #state: LiveState = 'connecting';
  #lastSeq: string | undefined;
  #waitMs = firstWaitMs;
  #source: EventSource | undefined;
  #reopening: ReturnType<typeof setTimeout> | undefined;

  constructor(url: string, tell: (told: Told) => void) {
    this.#url = url;
    this.#tell = tell;
  }

  get state(): LiveState {
    return this.#state;
  }

  /** Opens it unless it is open; or at once, where it waits to be opened again. */
  start(): void {
    if (this.#source !== undefined) return;
    clearTimeout(this.#reopening);
    const source = new EventSource(this.#lastSeq === undefined ? this.#url : `${this.#url}?after=${this.#lastSeq}`);
    source.addEventListener('open', () => this.#become('live'));
    source.addEventListener('message', (message: MessageEvent<string>) => this.#receive(message));
    source.addEventListener('error', () => this.#failed(source));
    this.#source = source;
  }

  /** Closes the stream when no tab follows it. The next tab reads everything itself, and needs only later changes. */
  stop(): void {
    clearTimeout(this.#reopening);
    this.#source?.close();
    this.#source = undefined;
    this.#lastSeq = undefined;
    this.#state = 'connecting';
  }

  #receive(message: MessageEvent<string>): void {
    this.#waitMs = firstWaitMs;
    this.#lastSeq = message.lastEventId;
    const digest = JSON.parse(message.data) as DigestMessage;
    if (Object.keys(digest).length > 0) this.#tell({ kind: 'digest', digest });
  }

  #failed(source: EventSource): void {
    this.#become('lost');
    if (source.readyState !== EventSource.CLOSED) return;
    this.#source = undefined;
    this.#tell({ kind: 'refused' });
    this.#reopening = setTimeout(() => this.start(), this.#waitMs * (0.75 + Math.random() / 2));
    this.#waitMs = Math.min(this.#waitMs * 2, longestWaitMs);
  }

  #become(state: LiveState): void {
    if (state === this.#state) return;
    this.#state = state;
    this.#tell({ kind: 'state', state });
  }
}
