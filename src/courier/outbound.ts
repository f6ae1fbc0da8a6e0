/**
 * Outbound HTTP of couriers: one POST, from the check of its callback to the receiver's answer. It belongs to the shell, so that
 * no engine can bypass the checks.
 *
 * 1. A request waits for a slot first (`slots.ts`); its times begin when it has one.
 * 2. Redirects are not followed: the status is the answer.
 * 3. At most 16 KiB of the answer are read. A status of 2xx is an answer at once; its body is drained afterwards.
 * 4. A failure is an answer with a code. Only the caller's signal rejects.
 *
 * A connection that was kept may be closed by the receiver just as it is used again. Such a request is repeated once, on a new
 * connection. The receiver may then get it twice, as after any lost answer.
 */
import { type ClientRequest, type IncomingMessage, request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { isIP } from 'node:net';
import type { Outbound, OutboundAnswer, OutboundRequest } from '../contract/bus.ts';
import type { Permit } from '../kernel/semaphore.ts';
import { Guard, type GuardOptions, type Target } from './guard.ts';
import { parseRetryAfter } from './retry-after.ts';
import { Slots } from './slots.ts';
import { type DialOptions, makeSockets, OtherAddress, type Sockets } from './sockets.ts';

export interface OutboundOptions extends GuardOptions {
  readonly maxConnections: number;
  readonly maxPerHost?: number;
  readonly caFile?: string | undefined;
  /** The clock for dates in `Retry-After`. */
  readonly now: () => number;
}

export interface CourierOutbound extends Outbound {
  readonly close: () => void;
}

type Failure = Extract<OutboundAnswer, { readonly code: string }>;
type Phase = 'dialling' | 'handshake' | 'sent';

const usualMaxPerHost = 64;
const maxAnswerBytes = 16 * 1024;
const maxExcerptChars = 1_000;
/** A 2xx is delivered already; its body may still keep the connection busy for this long. */
const drainMs = 2_000;
const errnosOfReset: ReadonlySet<unknown> = new Set(['ECONNRESET', 'EPIPE', 'ECONNABORTED']);

export function makeOutbound(options: OutboundOptions): CourierOutbound {
  const guard = new Guard(options);
  const sockets = makeSockets({ maxFree: options.maxConnections, caFile: options.caFile });
  const slots = new Slots({ total: options.maxConnections, perHost: options.maxPerHost ?? usualMaxPerHost });
  const deliver = async (request: OutboundRequest, signal: AbortSignal): Promise<OutboundAnswer> => {
    const host = hostOf(request.url);
    const permit = await slots.take(host, signal);
    if (permit === undefined) throw signal.reason;
    const attempt = new Attempt({ request, sockets, signal, now: options.now });
    try {
      return await attempt.run(guard);
    } finally {
      attempt.whenFree(() => permit.release());
    }
  };
  return { post: deliver, close: () => sockets.close() };
}

/** All callbacks that are not valid share one place. */
function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).hostname : '';
}

interface AttemptOptions {
  readonly request: OutboundRequest;
  readonly sockets: Sockets;
  readonly signal: AbortSignal;
  readonly now: () => number;
}

/** One POST. `run` is called once. */
class Attempt {
  readonly #options: AttemptOptions;
  readonly #startedMs = performance.now();
  #draining: Promise<void> = Promise.resolve();

  constructor(options: AttemptOptions) {
    this.#options = options;
  }

  /** Calls back once the connection is free again or closed. */
  whenFree(release: Permit['release']): void {
    void this.#draining.then(release);
  }

  async run(guard: Guard): Promise<OutboundAnswer> {
    const { url, connectMs, totalMs } = this.#options.request;
    const checked = await unlessAborted(this.#options.signal, guard.check(url, Math.min(connectMs, totalMs)));
    if ('code' in checked) return this.#fail(checked.code, checked.detail);
    const { target } = checked;
    let failure: Failure | undefined;
    for (const [i, address] of target.addresses.entries()) {
      const answer = await this.#dial(target, address, { share: 1 / (target.addresses.length - i) });
      if (!('code' in answer) || answer.code !== 'connect' || this.#leftMs() === 0) return answer;
      failure = answer;
    }
    return failure ?? this.#fail('dns', 'no address');
  }

  #leftMs(): number {
    return Math.max(0, this.#options.request.totalMs - (performance.now() - this.#startedMs));
  }

  #fail(code: Failure['code'], detail: string): Failure {
    return { code, detail, ms: this.#elapsedMs() };
  }

  #elapsedMs(): number {
    return Math.round(performance.now() - this.#startedMs);
  }

  /** Repeats the request if the receiver has closed a connection that was kept. */
  async #dial(target: Target, address: string, { share }: { readonly share: number }): Promise<OutboundAnswer> {
    const first = await this.#send(target, address, { share, isFresh: false });
    if (first !== 'stale') return first;
    const second = await this.#send(target, address, { share, isFresh: true });
    return second === 'stale' ? this.#fail('reset', 'the receiver closed the connection') : second;
  }

  #send(
    target: Target,
    address: string,
    { share, isFresh }: { readonly share: number; readonly isFresh: boolean },
  ): Promise<OutboundAnswer | 'stale'> {
    const { request, signal } = this.#options;
    const client = this.#open(target, address, isFresh);
    return new Promise((resolve, reject) => {
      let phase: Phase = 'dialling';
      const timers = new Timers();
      const settle = (answer: OutboundAnswer | 'stale'): void => {
        timers.clear();
        signal.removeEventListener('abort', abort);
        resolve(answer);
      };
      const cut = (code: Failure['code'], detail: string): void => {
        settle(this.#fail(code, detail));
        client.destroy();
      };
      const abort = (): void => {
        timers.clear();
        client.destroy();
        reject(signal.reason);
      };
      signal.addEventListener('abort', abort, { once: true });
      const connectMs = Math.min(request.connectMs * share, this.#leftMs());
      timers.connect = setTimeout(
        () => cut(phase === 'handshake' ? 'tls' : 'connect', lateWords(phase, connectMs)),
        connectMs,
      );
      timers.total = setTimeout(() => cut('timeout', `no answer within ${request.totalMs} ms`), this.#leftMs());
      let hasStatus = false;
      client.on('error', (error) => {
        // nonsense after the headers does not change the answer
        if (hasStatus) return;
        if (phase === 'sent' && client.reusedSocket && isReset(error)) settle('stale');
        else settle(this.#fail(codeOf(error, phase), wordsOf(error)));
      });
      onPhase(client, target.isSecure, (reached) => {
        phase = reached;
        if (reached === 'sent') clearTimeout(timers.connect);
      });
      client.on('response', (response) => {
        hasStatus = true;
        void this.#read(response, timers).then(settle, () => {});
      });
      // 101: without this listener, Node closes the connection and reports nothing
      client.on('upgrade', ({ statusCode }) => cut('reset', `the receiver answered ${statusCode ?? 101}, an upgrade`));
      client.end(request.body);
    });
  }

  #open(target: Target, address: string, isFresh: boolean): ClientRequest {
    const { request, sockets } = this.#options;
    const options: DialOptions = {
      agent: sockets.agentFor(target.isSecure, isFresh),
      checkedAddress: address,
      method: 'POST',
      host: target.name,
      servername: isIP(target.name) === 0 ? target.name : '',
      port: target.port,
      path: target.path,
      headers: { ...request.headers, host: target.host, 'content-length': String(request.body.byteLength) },
    };
    return target.isSecure ? httpsRequest(options) : httpRequest(options);
  }

  async #read(response: IncomingMessage, timers: Timers): Promise<OutboundAnswer> {
    const status = response.statusCode ?? 0;
    const retryAfterMs = parseRetryAfter(response.headers['retry-after'], this.#options.now());
    const answer = (excerpt: string): OutboundAnswer => ({ status, retryAfterMs, excerpt, ms: this.#elapsedMs() });
    const body = readSome(response);
    if (status >= 200 && status <= 299) {
      timers.clear();
      const late = setTimeout(() => response.destroy(), drainMs);
      this.#draining = body.then(() => clearTimeout(late));
      return answer('');
    }
    // the status counts, even if the body never ends
    const late = new Promise<string>((resolve) => {
      clearTimeout(timers.total);
      timers.total = setTimeout(() => {
        response.destroy();
        resolve('');
      }, this.#leftMs());
    });
    return answer(await Promise.race([body, late]));
  }
}

/** Rejects when the signal aborts; the work is then abandoned. */
async function unlessAborted<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  let leave = (): void => {};
  const aborted = new Promise<never>((_, reject) => {
    leave = () => reject(signal.reason);
    signal.addEventListener('abort', leave, { once: true });
  });
  try {
    signal.throwIfAborted();
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener('abort', leave);
  }
}

class Timers {
  connect: NodeJS.Timeout | undefined;
  total: NodeJS.Timeout | undefined;

  clear(): void {
    clearTimeout(this.connect);
    clearTimeout(this.total);
  }
}

/** Reports the phases of the connection; one that was kept is ready at once. */
function onPhase(client: ClientRequest, isSecure: boolean, report: (phase: Phase) => void): void {
  client.once('socket', (socket) => {
    if (client.reusedSocket) return report('sent');
    socket.once('connect', () => report(isSecure ? 'handshake' : 'sent'));
    if (isSecure) socket.once('secureConnect', () => report('sent'));
  });
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

function isReset(error: Error): boolean {
  return errnosOfReset.has(Reflect.get(error, 'code'));
}

function codeOf(error: Error, phase: Phase): Failure['code'] {
  if (error instanceof OtherAddress) return 'refused_address';
  if (phase === 'dialling') return 'connect';
  return phase === 'handshake' && !isReset(error) ? 'tls' : 'reset';
}

function wordsOf(error: Error): string {
  const code: unknown = Reflect.get(error, 'code');
  return typeof code === 'string' && !error.message.includes(code) ? `${error.message} (${code})` : error.message;
}

function lateWords(phase: Phase, ms: number): string {
  return phase === 'handshake'
    ? `no TLS handshake within ${Math.round(ms)} ms`
    : `no connection within ${Math.round(ms)} ms`;
}
