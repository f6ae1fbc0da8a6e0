/**
 * A client of the Docker Engine API, which podman serves as well.
 *
 * 1. Paths have no version, so that an engine answers in its own; `checkEngine` rejects engines older than 1.41.
 * 2. An answer of 400 or more is an `EngineError` with the engine's message. A connection that breaks, or cannot be made, is an
 *    `EngineUnreachable`: whether the engine has done the work is then unknown.
 * 3. There are no timeouts. An engine that hangs delays its callers, who abort by their signals. A repeated call of a hanging
 *    engine could start a container twice.
 * 4. Each call has a connection of its own: a stale connection of a pool would look like an engine that broke down.
 */
import { type ClientRequest, type IncomingMessage, type RequestOptions, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { type EngineAddress, formatAddress } from './engine-address.ts';

export class EngineError extends Error {
  override readonly name = 'EngineError';
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

export class EngineUnreachable extends Error {
  override readonly name = 'EngineUnreachable';
}

export interface EngineCall {
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly path: string;
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
}

export interface EngineReply {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  /** Parsed if it is JSON, else text. */
  readonly body: unknown;
}

/** Engines answer with little; a list of 10,000 containers takes 20 MB. */
const maxReplyBytes = 64 * 1024 * 1024;
/** A remote machine that vanished is noticed after 30 s and ten probes, one each second. */
const keepAliveMs = 30_000;

export class EngineClient {
  readonly #address: EngineAddress;

  constructor(address: EngineAddress) {
    this.#address = address;
  }

  /** For messages. */
  get name(): string {
    return formatAddress(this.#address);
  }

  /** Whether the engine runs on this machine, as far as its address tells. */
  get isLocal(): boolean {
    return 'socketPath' in this.#address;
  }

  async call(call: EngineCall): Promise<EngineReply> {
    const answer = await this.#open(call);
    const text = await this.#read(answer);
    const { statusCode: status = 0, headers } = answer;
    const body = parseBody(text);
    if (status >= 400) throw new EngineError(status, messageIn(body));
    return { status, headers, body };
  }

  /** An answer as a stream, paused. It fails with a plain error if the connection breaks. */
  async stream(call: EngineCall): Promise<IncomingMessage> {
    const answer = await this.#open(call);
    const { statusCode: status = 0 } = answer;
    if (status >= 400) throw new EngineError(status, messageIn(parseBody(await this.#read(answer))));
    return answer;
  }

  #open({ method, path, query = {}, body, headers = {}, signal }: EngineCall): Promise<IncomingMessage> {
    const content = body === undefined ? undefined : JSON.stringify(body);
    const type = content === undefined ? {} : { 'content-type': 'application/json' };
    return new Promise((resolve, reject) => {
      const request = this.#request({
        method,
        path: path + formatQuery(query),
        headers: { ...type, 'content-length': Buffer.byteLength(content ?? ''), ...headers },
        agent: false,
        ...(signal === undefined ? {} : { signal }),
      });
      request.once('socket', (socket) => socket.setKeepAlive(true, keepAliveMs));
      request.once('response', resolve);
      request.on('error', (error) => reject(signal?.aborted ? error : this.#unreachable(error)));
      request.end(content);
    });
  }

  #request(options: RequestOptions): ClientRequest {
    const address = this.#address;
    if ('socketPath' in address) return requestHttp({ ...options, ...address, host: 'docker' });
    const { host, port, tls } = address;
    return tls === undefined
      ? requestHttp({ ...options, host, port })
      : requestHttps({ ...options, host, port, ...tls });
  }

  async #read(answer: IncomingMessage): Promise<string> {
    const pieces: Buffer[] = [];
    let bytes = 0;
    try {
      for await (const piece of answer as AsyncIterable<Buffer>) {
        bytes += piece.length;
        if (bytes > maxReplyBytes) throw new EngineError(0, `an answer had more than ${maxReplyBytes} bytes`);
        pieces.push(piece);
      }
    } catch (error) {
      throw error instanceof EngineError ? error : this.#unreachable(error);
    }
    return Buffer.concat(pieces).toString('utf8');
  }

  #unreachable(error: unknown): EngineUnreachable {
    const code: unknown = error instanceof Error ? Reflect.get(error, 'code') : undefined;
    const known = typeof code === 'string' ? connectionFaults[code] : undefined;
    const words = error instanceof Error ? error.message : String(error);
    return new EngineUnreachable(`the Docker engine at ${this.name} ${known ?? `cannot be reached: ${words}`}`, {
      cause: error,
    });
  }
}

const connectionFaults: Readonly<Record<string, string>> = {
  ENOENT: 'does not exist',
  ECONNREFUSED: 'does not run',
  EACCES: 'may not be used by this user (on most systems, members of the group docker may)',
  ECONNRESET: 'closed the connection',
  ENOTFOUND: 'has a name that is not known',
};

function formatQuery(query: NonNullable<EngineCall['query']>): string {
  const given = Object.entries(query).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, String(value)] as [string, string]],
  );
  return given.length === 0 ? '' : `?${new URLSearchParams(given).toString()}`;
}

function parseBody(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** podman puts a shorter cause beside the message. */
function messageIn(body: unknown): string {
  const message: unknown = typeof body === 'object' && body !== null ? Reflect.get(body, 'message') : body;
  return typeof message === 'string' && message !== '' ? message.trim() : 'no reason given';
}
