/**
 * Outbound HTTP of couriers: one POST, from the wait for a slot to the receiver's answer. It belongs to the shell, so that no engine can
 * bypass the checks (`src/outbound/`).
 *
 * 1. A request waits for a slot first (`slots.ts`); its times begin when it has one.
 * 2. At most 16 KiB of the answer are read. A status of 2xx is an answer at once; its body is drained afterwards.
 * 3. A failure is an answer with a code. Only the caller's signal rejects.
 */
import type { IncomingMessage } from 'node:http';
import type { Outbound, OutboundAnswer, OutboundRequest } from '../contract/bus.ts';
import { exchange, type ExchangeClock } from '../outbound/exchange.ts';
import { Guard, type GuardOptions } from '../outbound/guard.ts';
import { makeSockets } from '../outbound/sockets.ts';
import { parseRetryAfter } from './retry-after.ts';
import { Slots } from './slots.ts';

export interface OutboundOptions extends Omit<GuardOptions, 'settings'> {
  readonly maxConnections: number;
  readonly maxPerHost?: number;
  readonly caFile?: string | undefined;
  /** The clock for dates in `Retry-After`. */
  readonly now: () => number;
}

export interface CourierOutbound extends Outbound {
  readonly close: () => void;
}

const usualMaxPerHost = 64;
const maxAnswerBytes = 16 * 1024;
const maxExcerptChars = 1_000;
/** A 2xx is delivered already; its body may still keep the connection busy for this long. */
const drainMs = 2_000;
/** Their settings begin with it. */
const settings = 'MILLRACE_BUS';

export function makeOutbound(options: OutboundOptions): CourierOutbound {
  const guard = new Guard({ ...options, settings });
  const sockets = makeSockets({ maxFree: options.maxConnections, caFile: options.caFile, settings });
  const slots = new Slots({ total: options.maxConnections, perHost: options.maxPerHost ?? usualMaxPerHost });
  const post = async (request: OutboundRequest, signal: AbortSignal): Promise<OutboundAnswer> => {
    const permit = await slots.take(hostOf(request.url), signal);
    if (permit === undefined) throw signal.reason;
    const reader = new AnswerReader(options.now);
    try {
      const read = reader.read.bind(reader);
      return await exchange({ request: { ...request, method: 'POST' }, guard, sockets, reuse: true, signal, read });
    } finally {
      void reader.drained.then(() => permit.release());
    }
  };
  return { post, close: () => sockets.close() };
}

/** All callbacks that are not valid share one place. */
function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).hostname : '';
}

/** Reads one answer. */
class AnswerReader {
  readonly #now: () => number;
  /** Resolves once the connection is free again or closed. */
  drained: Promise<void> = Promise.resolve();

  constructor(now: () => number) {
    this.#now = now;
  }

  async read(response: IncomingMessage, clock: ExchangeClock): Promise<OutboundAnswer> {
    const status = response.statusCode ?? 0;
    const retryAfterMs = parseRetryAfter(response.headers['retry-after'], this.#now());
    const answer = (excerpt: string): OutboundAnswer => ({ status, retryAfterMs, excerpt, ms: clock.elapsedMs() });
    const body = readSome(response);
    if (status >= 200 && status <= 299) {
      const late = setTimeout(() => response.destroy(), drainMs);
      this.drained = body.then(() => clearTimeout(late));
      return answer('');
    }
    // the status counts, even if the body never ends
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<string>((resolve) => {
      timer = setTimeout(() => {
        response.destroy();
        resolve('');
      }, clock.leftMs());
    });
    const excerpt = await Promise.race([body, late]);
    clearTimeout(timer);
    return answer(excerpt);
  }
}

/** Reads up to 16 KiB and cuts the rest. Resolves to an excerpt of the text, also if the body ends too early. */
function readSome(response: IncomingMessage): Promise<string> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    const finish = (): void => resolve(excerptOf(Buffer.concat(chunks)));
    response.on('data', (chunk: Buffer) => {
      if (bytes < maxAnswerBytes) chunks.push(chunk.subarray(0, maxAnswerBytes - bytes));
      bytes += chunk.length;
      if (bytes <= maxAnswerBytes) return;
      finish();
      response.destroy();
    });
    response.on('error', () => {});
    response.once('close', finish);
  });
}

function excerptOf(bytes: Buffer): string {
  // PostgreSQL has no NUL in a text
  return bytes.toString('utf8').replaceAll('\0', '\uFFFD').slice(0, maxExcerptChars).toWellFormed();
}
