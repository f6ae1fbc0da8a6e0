/**
 * Answers that go on: events, changes, followed logs. Each is kept with the key or session it was asked for with, and ends
 * as soon as that no longer opens anything. They are looked at when a revocation is heard of; and, for one that was not heard
 * of and for sessions that run out, every few seconds, by one statement.
 *
 * A key or session has a bounded number of them: each event costs work for each stream. A gateway that is stopping opens no
 * more.
 */
import { MillraceError } from '../../errors.ts';
import type { Log } from '../../kernel/log.ts';
import { warnThrottled } from '../../kernel/log-throttle.ts';
import { every, type Service } from '../../kernel/service.ts';
import type { Db } from '../../kernel/sql.ts';
import type { Time } from '../../kernel/time.ts';
import { findValidHashes } from '../access/session-queries.ts';

const sweepMs = 5_000;
/** Of one key or session, in this process. */
const maxStreams = 100;

export interface OpenStreamsOptions {
  readonly control: Db;
  readonly time: Time;
  readonly log: Log;
}

export class OpenStreams {
  readonly #options: OpenStreamsOptions;
  /** How to end them, by the hash of the key or cookie, as text. */
  readonly #open = new Map<string, Set<() => void>>();
  #isQuiet = false;
  readonly #onFault: (error: unknown) => void;
  readonly service: Service;

  constructor(options: OpenStreamsOptions) {
    this.#options = options;
    this.#onFault = warnThrottled(options.log, 'the keys of open streams cannot be read; trying again');
    const sweeping = every(sweepMs, 'open streams', () => this.#look(), this.#onFault);
    this.service = { ...sweeping, quiet: () => (this.#isQuiet = true) };
  }

  /** An answer with the same content, which may end sooner. Refused where the key or session has too many. */
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

  /** Keys or sessions may have ended. */
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

/** By what tells proxies to pass it on as it comes. */
export function goesOn(answer: Response): boolean {
  return answer.headers.get('x-accel-buffering') === 'no';
}

/** The same bytes; `end` closes it as if it were over. `onOver` is called once, however it ends. */
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
