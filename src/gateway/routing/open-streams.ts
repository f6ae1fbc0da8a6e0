/**
 * Streamed answers: events, changes, followed logs. Each stream belongs to the key or session that opened it, and ends as soon as
 * that is no longer valid. Validity is checked when a revocation arrives, and every 5 s with one statement, for lost
 * revocations and expired sessions.
 *
 * The number of streams of a key or session is limited, because each event costs work for each stream. A stopping gateway opens
 * no more.
 */
import { MillraceError } from '../../errors.ts';
import type { Log } from '../../kernel/log.ts';
import { warnThrottled } from '../../kernel/log-throttle.ts';
import { every, type Service } from '../../kernel/service.ts';
import type { Db } from '../../kernel/sql.ts';
import type { Time } from '../../kernel/time.ts';
import { findValidHashes } from '../access/session-queries.ts';

const sweepMs = 5_000;
/** The maximum number of streams of one key or session in this process. */
const maxStreams = 100;

export interface OpenStreamsOptions {
  readonly control: Db;
  readonly time: Time;
  readonly log: Log;
}

export class OpenStreams {
  readonly #options: OpenStreamsOptions;
  /** Functions that end the streams, by the base64 hash of the key or cookie. */
  readonly #open = new Map<string, Set<() => void>>();
  #isQuiet = false;
  readonly #onFault: (error: unknown) => void;
  readonly service: Service;

  constructor(options: OpenStreamsOptions) {
    this.#options = options;
    this.#onFault = warnThrottled(options.log, 'checking the keys of open streams failed, retrying');
    const sweeping = every(sweepMs, 'open streams', () => this.#look(), this.#onFault);
    this.service = { ...sweeping, quiet: () => (this.#isQuiet = true) };
  }

  /** Returns an answer with the same content, which may end sooner. Throws if the key or session has too many streams. */
  keep(answer: Response, hash: Buffer): Response {
    if (answer.body === null) return answer;
    if (this.#isQuiet) {
      void answer.body.cancel().catch(() => {});
      throw new MillraceError('stopping', 'this gateway is stopping and opens no more streams');
    }
    const key = hash.toString('base64');
    const streams = this.#open.get(key) ?? new Set();
    if (streams.size >= maxStreams) {
      void answer.body.cancel().catch(() => {});
      const detail = `this key or session has ${maxStreams} streams of events, changes and logs open; close some first`;
      throw new MillraceError('too_many', detail, { headers: { 'retry-after': '5' } });
    }
    this.#open.set(key, streams);
    const { body, end } = endable(answer.body, () => {
      streams.delete(end);
      if (streams.size === 0 && this.#open.get(key) === streams) this.#open.delete(key);
    });
    streams.add(end);
    return new Response(body, { status: answer.status, headers: answer.headers });
  }

  /** The gateway is stopping. */
  get isQuiet(): boolean {
    return this.#isQuiet;
  }

  /** Checks all streams, because keys or sessions may have ended. */
  check(): void {
    this.#look().catch(this.#onFault);
  }

  async #look(): Promise<void> {
    const kept = [...this.#open.keys()];
    if (kept.length === 0) return;
    const hashes = kept.map((key) => Buffer.from(key, 'base64'));
    const good = await findValidHashes(this.#options.control, hashes, new Date(this.#options.time.now()));
    const known = new Set(good.map((hash) => hash.toString('base64')));
    for (const key of kept) if (!known.has(key)) for (const end of this.#open.get(key) ?? []) end();
  }
}

/** Whether the answer is a stream. It has the header that asks proxies not to buffer it. */
export function goesOn(answer: Response): boolean {
  return answer.headers.get('x-accel-buffering') === 'no';
}

/** Wraps a stream. `end` closes it normally. `onOver` is called once, however it ends. */
function endable(
  source: ReadableStream<Uint8Array>,
  onOver: () => void,
): { body: ReadableStream<Uint8Array>; end: () => void } {
  const reader = source.getReader();
  let sink: ReadableStreamDefaultController<Uint8Array> | undefined;
  const over = (): boolean => {
    const isFirst = sink !== undefined;
    sink = undefined;
    if (isFirst) onOver();
    return isFirst;
  };
  const body = new ReadableStream<Uint8Array>(
    {
      start: (controller) => void (sink = controller),
      async pull(controller) {
        const read = await reader.read().catch((error: unknown) => {
          over();
          throw error;
        });
        if (!read.done) sink?.enqueue(read.value);
        else if (over()) controller.close();
      },
      async cancel(reason) {
        over();
        await reader.cancel(reason);
      },
    },
    { highWaterMark: 0 },
  );
  const end = (): void => {
    const controller = sink;
    if (!over()) return;
    controller?.close();
    reader.cancel().catch(() => {});
  };
  return { body, end };
}
