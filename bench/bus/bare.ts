/**
 * *Bare*: a node:http server that does the least that publishing needs. It parses the same bodies, finds the key in a map, and
 * appends the events as `append` does. Requests that arrive during a commit share the next one, up to 1,000 events.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Appender, firstPartitions, openAppender, type Row } from './append.ts';
import { type ParsedEvent, rowOf } from './events.ts';

const maxRowsPerGroup = 1_000;

interface Waiting {
  readonly rows: readonly Row[];
  readonly isBulk: boolean;
  readonly response: ServerResponse;
}

export function makeBare() {
  return {
    /** Serves `POST /bus/topics/{name}`. Returns the URL. */
    async listen({ database, key }: { database: string; key: string }): Promise<string> {
      const appender = await openAppender(database, firstPartitions.bare);
      const keys = new Map([[`Bearer ${key}`, 'bench']]);
      const post = groupCommits(appender);
      const server = createServer((request, response) => {
        if (keys.has(request.headers.authorization ?? '')) readBody(request, (body) => post(request, response, body));
        else response.writeHead(401).end();
      });
      server.listen(0, '127.0.0.1');
      await new Promise((resolve) => server.once('listening', resolve));
      return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    },
  };
}

function readBody(request: IncomingMessage, done: (body: string) => void): void {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => done(Buffer.concat(chunks).toString()));
}

function groupCommits(appender: Appender) {
  let waiting: Waiting[] = [];
  let isWriting = false;
  const write = async (): Promise<void> => {
    isWriting = true;
    while (waiting.length > 0) {
      const group = takeGroup(waiting);
      waiting = waiting.slice(group.length);
      let seq = await appender.append(group.flatMap(({ rows }) => rows));
      for (const { rows, isBulk, response } of group) {
        const [first, last] = [seq + 1, (seq += rows.length)];
        const text = isBulk ? `{"first":"${first}","last":"${last}"}` : `{"id":"${first}"}`;
        response.writeHead(200, { 'content-type': 'application/json' }).end(text);
      }
    }
    isWriting = false;
  };
  return (request: IncomingMessage, response: ServerResponse, body: string): void => {
    const topic = (request.url ?? '').slice('/bus/topics/'.length);
    const parsed = JSON.parse(body) as ParsedEvent | ParsedEvent[];
    const isBulk = Array.isArray(parsed);
    const t = Date.now();
    waiting.push({ rows: (isBulk ? parsed : [parsed]).map((event) => rowOf(topic, event, t)), isBulk, response });
    if (!isWriting) void write();
  };
}

function takeGroup(waiting: readonly Waiting[]): Waiting[] {
  let rows = 0;
  const end = waiting.findIndex((each, i) => (rows += each.rows.length) > maxRowsPerGroup && i > 0);
  return waiting.slice(0, end === -1 ? waiting.length : end);
}
