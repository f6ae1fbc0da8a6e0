/** HTTP as bytes on a socket, for requests that no client library would send. */
import { connect, type Socket } from 'node:net';
import { until } from './until.ts';

export interface RawConnection {
  readonly socket: Socket;
  /** Everything received so far. */
  readonly text: () => string;
  /** Number of answers that have begun. */
  readonly answers: () => number;
  readonly isClosed: () => boolean;
  readonly send: (text: string) => void;
  /** Waits for this many answers, or for the end of the connection. */
  readonly waitForAnswers: (count: number) => Promise<void>;
}

/** Closed connections and resets count as answers, not as errors. */
export function openRaw(url: string): RawConnection {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  let text = '';
  let isClosed = false;
  socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')));
  socket.on('error', () => {});
  socket.on('close', () => (isClosed = true));
  const answers = (): number => text.split('HTTP/1.1 ').length - 1;
  return {
    socket,
    text: () => text,
    answers,
    isClosed: () => isClosed,
    send: (sent) => void socket.write(sent),
    waitForAnswers: async (count) => {
      await until(`${count} answers came, or the connection ended`, () => answers() >= count || isClosed || undefined);
    },
  };
}
