/**
 * One HTTP request, from the check of its address to the head of the answer. Couriers and workers send requests this way, so that the
 * same checks protect both.
 *
 * 1. The address is checked before anything is sent, and the connection leads to the checked address (`guard.ts`, `sockets.ts`).
 * 2. Redirects are not followed: the status is the answer.
 * 3. A failure is a value with a code. Only the caller's signal rejects.
 * 4. Once the answer has a status, the caller's `read` decides how much of it is read, and for how long.
 *
 * A connection that was kept may be closed by the receiver just as it is used again. Such a request is repeated once, on a new
 * connection. The receiver may then get it twice, as after any lost answer. Without `reuse`, each request has a connection of its own.
 */
import { type ClientRequest, type IncomingMessage, request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { isIP } from 'node:net';
import type { Guard, Target } from './guard.ts';
import { type DialOptions, OtherAddress, type Sockets } from './sockets.ts';

interface ExchangeRequest {
  readonly url: string;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Null: the request has none. */
  readonly body: Uint8Array | null;
  readonly connectMs: number;
  /** Until the status of the answer. Infinite: only the signal limits it. */
  readonly totalMs: number;
}

export interface ExchangeFailure {
  readonly code: 'refused_address' | 'dns' | 'connect' | 'tls' | 'timeout' | 'reset';
  readonly detail: string;
  readonly ms: number;
}

export interface ExchangeClock {
  /** The rest of `totalMs`. */
  readonly leftMs: () => number;
  readonly elapsedMs: () => number;
}

export interface ExchangeOptions<T> {
  readonly request: ExchangeRequest;
  readonly guard: Guard;
  readonly sockets: Sockets;
  readonly reuse: boolean;
  readonly signal: AbortSignal;
  /** Must resolve, also if the connection ends. */
  readonly read: (response: IncomingMessage, clock: ExchangeClock) => Promise<T>;
}

type Phase = 'dialling' | 'handshake' | 'sent';

const errnosOfReset: ReadonlySet<unknown> = new Set(['ECONNRESET', 'EPIPE', 'ECONNABORTED']);
/** The most that a timer of Node can wait. */
const maxTimerMs = 2 ** 31 - 1;

/** Resolves to what `read` returned, or to a failure. */
export function exchange<T extends object>(options: ExchangeOptions<T>): Promise<T | ExchangeFailure> {
  return new Exchange(options).run();
}

export function isExchangeFailure(answer: object): answer is ExchangeFailure {
  return 'code' in answer;
}

class Exchange<T extends object> {
  readonly #options: ExchangeOptions<T>;
  readonly #startedMs = performance.now();

  constructor(options: ExchangeOptions<T>) {
    this.#options = options;
  }

  async run(): Promise<T | ExchangeFailure> {
    const { guard, signal, request } = this.#options;
    const { url, connectMs, totalMs } = request;
    const checked = await unlessAborted(signal, guard.check(url, Math.min(connectMs, totalMs)));
    if ('code' in checked) return this.#fail(checked.code, checked.detail);
    const { target } = checked;
    let failure: ExchangeFailure | undefined;
    for (const [i, address] of target.addresses.entries()) {
      const answer = await this.#dial(target, address, { share: 1 / (target.addresses.length - i) });
      if (!isExchangeFailure(answer) || answer.code !== 'connect' || this.#leftMs() === 0) return answer;
      failure = answer;
    }
    return failure ?? this.#fail('dns', 'no address');
  }

  #leftMs(): number {
    return Math.max(0, this.#options.request.totalMs - (performance.now() - this.#startedMs));
  }

  #elapsedMs(): number {
    return Math.round(performance.now() - this.#startedMs);
  }

  #fail(code: ExchangeFailure['code'], detail: string): ExchangeFailure {
    return { code, detail, ms: this.#elapsedMs() };
  }

  /** Repeats the request if the receiver has closed a connection that was kept. */
  async #dial(target: Target, address: string, { share }: { readonly share: number }): Promise<T | ExchangeFailure> {
    const first = await this.#send(target, address, { share, isFresh: !this.#options.reuse });
    if (first !== 'stale') return first;
    const second = await this.#send(target, address, { share, isFresh: true });
    return second === 'stale' ? this.#fail('reset', 'the receiver closed the connection') : second;
  }

  #send(
    target: Target,
    address: string,
    { share, isFresh }: { readonly share: number; readonly isFresh: boolean },
  ): Promise<T | ExchangeFailure | 'stale'> {
    const { request, signal, read } = this.#options;
    // an event that has fired is not heard again
    signal.throwIfAborted();
    const client = this.#open(target, address, isFresh);
    return new Promise((resolve, reject) => {
      let phase: Phase = 'dialling';
      let hasStatus = false;
      const timers = new Timers();
      const settle = (answer: T | ExchangeFailure | 'stale'): void => {
        timers.clear();
        signal.removeEventListener('abort', abort);
        resolve(answer);
      };
      const cut = (code: ExchangeFailure['code'], detail: string): void => {
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
      if (this.#leftMs() <= maxTimerMs)
        timers.total = setTimeout(() => cut('timeout', `no answer within ${request.totalMs} ms`), this.#leftMs());
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
        timers.clear();
        const clock = { leftMs: () => this.#leftMs(), elapsedMs: () => this.#elapsedMs() };
        void read(response, clock).then(settle, () => {});
      });
      // 101: without this listener, Node closes the connection and reports nothing
      client.on('upgrade', ({ statusCode }) => cut('reset', `the receiver answered ${statusCode ?? 101}, an upgrade`));
      client.end(request.body ?? undefined);
    });
  }

  #open(target: Target, address: string, isFresh: boolean): ClientRequest {
    const { request, sockets } = this.#options;
    const { method, headers, body } = request;
    const options: DialOptions = {
      agent: sockets.agentFor(target.isSecure, isFresh),
      checkedAddress: address,
      method,
      host: target.name,
      servername: isIP(target.name) === 0 ? target.name : '',
      port: target.port,
      path: target.path,
      headers: {
        ...headers,
        host: target.host,
        ...(body !== null && { 'content-length': String(body.byteLength) }),
      },
    };
    return target.isSecure ? httpsRequest(options) : httpRequest(options);
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

function isReset(error: Error): boolean {
  return errnosOfReset.has(Reflect.get(error, 'code'));
}

function codeOf(error: Error, phase: Phase): ExchangeFailure['code'] {
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
