/**
 * Serves the requests of one connection one after the other.
 *
 * A client may send many requests before it reads an answer (pipelining). Node parses them as they arrive and emits each at
 * once, even after the client has disconnected. Here:
 *
 * 1. A request is handled after the previous answer was sent. Until then it costs no work.
 * 2. Requests of a disconnected client are dropped.
 * 3. A connection with `maxWaiting` waiting requests is cut before the next one is parsed (`isFull`). Its socket cannot be
 *    paused instead: Node resumes it after each request that it parses, and 1.2 MB of pipelined requests would be 30,000
 *    objects.
 */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** The maximum number of waiting requests on one connection. Browsers and common clients do not pipeline at all. */
export const maxWaiting = 100;

interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

export interface Pipelines {
  readonly listener: RequestListener;
  /** Whether no further request may wait on this connection. */
  readonly isFull: (socket: Socket) => boolean;
}

export function oneAtATime(handle: RequestListener): Pipelines {
  /** For connections with a request in progress: the requests that wait behind it. */
  const lines = new WeakMap<Socket, Exchange[]>();

  const serve = ({ request, response }: Exchange, line: Exchange[]): void => {
    const { socket } = request;
    // emitted when the answer was sent, and when the connection broke
    response.once('close', () => {
      const next = line.shift();
      if (next === undefined) lines.delete(socket);
      else if (!socket.destroyed) serve(next, line);
    });
    handle(request, response);
  };

  return {
    isFull: (socket) => (lines.get(socket)?.length ?? 0) >= maxWaiting,
    listener: (request, response) => {
      const { socket } = request;
      const line = lines.get(socket);
      if (line === undefined) {
        const made: Exchange[] = [];
        lines.set(socket, made);
        serve({ request, response }, made);
      } else line.push({ request, response });
    },
  };
}
