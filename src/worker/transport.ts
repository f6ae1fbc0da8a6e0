/**
 * Carries a worker's messages to the API, and the answers back: over the network, or to a gateway in the same process.
 *
 * Over the network it uses node:http. `fetch` took three times the processor time for such small messages, more than all other
 * work of a busy worker (measured).
 */
import * as http from 'node:http';
import * as https from 'node:https';
import type { Socket } from 'node:net';
import { knownError } from '../errors.ts';

interface Message {
  readonly url: URL;
  readonly key: string;
  readonly body: object;
}

/** An answer from the network. */
export interface Received {
  readonly status: number;
  readonly text: string;
}

/** `made`: an object of the same build in this process, which needs no validation. */
export type Answer = Received | { readonly made: unknown };

export type Carry = (message: Message, signal: AbortSignal) => Promise<Answer>;

export function overNetwork(): Carry {
  const plain = new http.Agent({ keepAlive: true });
  const secure = new https.Agent({ keepAlive: true });
  return async (message, signal) => {
    const body = JSON.stringify(message.body);
    for (;;) {
      const isSecure = message.url.protocol === 'https:';
      const options = {
        method: 'POST',
        headers: headersOf(message.key, body),
        agent: isSecure ? secure : plain,
        signal,
      };
      const request = isSecure ? https.request(message.url, options) : http.request(message.url, options);
      try {
        return await answerTo(request, body);
      } catch (error) {
        // the other side closed the connection just when it was reused; every message may be sent twice
        if (!request.reusedSocket || signal.aborted || !isReset(error)) throw error;
      }
    }
  };
}

function answerTo(request: http.ClientRequest, body: string): Promise<Received> {
  return new Promise((resolve, reject) => {
    request.on('error', reject);
    request.on('socket', listen);
    request.on('response', (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () => {
        const { statusCode: status = 0, headers } = response;
        const isElsewhere = status >= 300 && status < 400 && headers.location !== undefined;
        resolve({ status, text: isElsewhere ? `see ${headers.location}` : Buffer.concat(chunks).toString() });
      });
    });
    request.end(body);
  });
}

/**
 * Node listens to a connection until its request is answered and sent, and treats a failed write as sent. If an answer arrived
 * before the end of the request, the error that follows would end the process without this listener.
 */
function listen(socket: Socket): void {
  if (!socket.listeners('error').includes(ignore)) socket.on('error', ignore);
}

function ignore(): void {}

function isReset(error: unknown): boolean {
  return error instanceof Error && 'code' in error && (error.code === 'ECONNRESET' || error.code === 'EPIPE');
}

/** `call`: the gateway of this process. It rejects with the error that a remote worker would receive. */
export function inProcess(call: (pathname: string, body: object, signal: AbortSignal) => Promise<unknown>): Carry {
  return async ({ url, body }, signal) => {
    try {
      return { made: await Promise.race([call(url.pathname, body, signal), abortOf(signal)]) };
    } catch (error) {
      const known = knownError(error);
      if (known === undefined) throw error;
      return { status: known.status, text: JSON.stringify(known.problem()) };
    }
  };
}

/** The gateway may ignore the abort, or notice it later. */
function abortOf(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const abort = (): void => reject(signal.reason as Error);
    if (signal.aborted) abort();
    else signal.addEventListener('abort', abort, { once: true });
  });
}

function headersOf(key: string, body: string): Record<string, string> {
  const length = String(Buffer.byteLength(body));
  return { authorization: `Bearer ${key}`, 'content-type': 'application/json', 'content-length': length };
}
