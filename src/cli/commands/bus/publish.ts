/**
 * `millrace publish`: sends one event, or a file of JSON lines in pages.
 *
 * 1. A page has at most 1,000 events and 3.5 MB, because the server takes an array of 1,000 and a body of 4 MiB.
 * 2. The Idempotency-Key of a page is a hash of topic, position and content. A command that is repeated within 24 hours cuts the
 *    same file into the same pages, and the server recognises those that it has.
 * 3. A page that the server could not take (429, 503, no connection) is sent again. This is safe because of its key.
 * 4. A fault names the line of the file. Pages before it are published.
 */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { resolve } from 'node:path';
import { z } from 'zod';
import { MillraceError } from '../../../errors.ts';
import { CallFailed } from '../../../http/client.ts';
import { delayMs } from '../../../kernel/backoff.ts';
import { pause } from '../../../kernel/service.ts';
import { readLines } from '../../print/lines.ts';
import { UsageError } from '../../session/exit.ts';
import type { Server } from '../../session/server.ts';
import type { Session } from '../../session/session.ts';
import { makeProgressPrinter } from '../backfills/follow-backfill.ts';
import { isTransient, patienceMs } from '../runs/follow-runs.ts';
import { parseJsonFlag } from './json-flag.ts';

export const eventTypes = ['create', 'update', 'delete', 'noop'] as const;

export const publishFlags = z.object({
  type: z.enum(eventTypes).optional(),
  data: z.string().optional(),
  key: z.string().optional(),
  id: z.string().optional(),
  target: z.string().optional(),
  file: z.string().optional(),
});
type Flags = z.output<typeof publishFlags>;

const pageLimits = { events: 1_000, bytes: 3_500_000 };
const retries = { firstMs: 200, capMs: 5_000, jitter: 0.5 };

export async function publish(session: Session, [topic = '', url]: readonly string[], flags: Flags): Promise<void> {
  if (flags.file !== undefined) return publishFile(session, topic, checkFileFlags(flags, url));
  const event = makeEvent(flags, url);
  const server = await session.connect();
  const body = new TextEncoder().encode(JSON.stringify(event));
  const answer = await server.tenant('POST /bus/topics/{name}', { params: { name: topic }, body });
  session.out.answer(answer, () => session.out.line('id' in answer ? answer.id : answer.first));
}

function makeEvent({ type, data, key, id, target }: Flags, url: string | undefined) {
  if (url === undefined) {
    throw new UsageError(
      'an event needs the address of what has changed: millrace publish TOPIC https://… --type update (--url is the server), or -f FILE',
    );
  }
  if (type === undefined) throw new UsageError(`an event needs --type: ${eventTypes.join(', ')}`);
  return { type, url, key, id, target, data: data === undefined ? undefined : parseJsonFlag('--data', data) };
}

/** Fields of single events cannot be combined with a file. */
function checkFileFlags({ file = '', ...fields }: Flags, url: string | undefined): string {
  const given = Object.entries(fields).find(([, value]) => value !== undefined)?.[0];
  if (given !== undefined) throw new UsageError(`--${given} is for a single event; with -f, each line has its own`);
  if (url !== undefined) throw new UsageError('with -f, each line has its own url; leave the argument out');
  return file;
}

/** Events as they stand in the file, with the numbers of their lines. */
interface Page {
  readonly texts: string[];
  readonly lines: number[];
  bytes: number;
}

const emptyPage = (): Page => ({ texts: [], lines: [], bytes: 0 });

async function publishFile(session: Session, topic: string, file: string): Promise<void> {
  const server = await session.connect();
  const name = file === '-' ? 'stdin' : file;
  const input = file === '-' ? session.io.stdin : readChunks(resolve(session.io.cwd, file), name);
  const total = { events: 0, repeated: 0, first: null as string | null, last: null as string | null };
  const printProgress = makeProgressPrinter(session);
  let position = 0;
  for await (const page of cutPages(input as AsyncIterable<Uint8Array>, name)) {
    session.signal.throwIfAborted();
    const { first, last, isRepeated } = await sendPage(session, server, { topic, name, position: position++, page });
    total.events += page.texts.length;
    if (isRepeated) total.repeated += page.texts.length;
    total.first ??= first;
    total.last = last;
    printProgress(`so far: ${formatTotal(total)}`, false);
  }
  if (total.events === 0) throw new UsageError(`${name} has no events`);
  if (session.io.stderr.isTTY === true) printProgress('', false);
  session.out.answer(total, () => {
    session.out.line(`${formatTotal(total)}: numbers ${total.first} to ${total.last}`);
  });
}

async function* readChunks(path: string, name: string): AsyncGenerator<Uint8Array> {
  try {
    yield* createReadStream(path) as AsyncIterable<Uint8Array>;
  } catch (error) {
    if (Reflect.get(Object(error), 'code') === 'ENOENT') throw new UsageError(`${name}: file not found`);
    throw error;
  }
}

function formatTotal({ events, repeated }: { readonly events: number; readonly repeated: number }): string {
  const fresh = events - repeated;
  const known = repeated === 0 ? '' : `, ${repeated.toLocaleString('en')} had been published before`;
  return `${fresh.toLocaleString('en')} event${fresh === 1 ? '' : 's'} published${known}`;
}

async function* cutPages(chunks: AsyncIterable<Uint8Array>, name: string): AsyncGenerator<Page> {
  let page = emptyPage();
  let line = 0;
  for await (const raw of readLines(chunks)) {
    line++;
    const text = (line === 1 ? raw.replace(/^\uFEFF/, '') : raw).trim();
    if (text === '') continue;
    checkLine(text, `${name}:${line}`);
    const bytes = Buffer.byteLength(text) + 1;
    if (page.texts.length === pageLimits.events || (page.bytes > 0 && page.bytes + bytes > pageLimits.bytes)) {
      yield page;
      page = emptyPage();
    }
    page.texts.push(text);
    page.lines.push(line);
    page.bytes += bytes;
  }
  if (page.texts.length > 0) yield page;
}

/** A line that is not an object would make the whole page something else. */
function checkLine(text: string, place: string): void {
  const message = text.startsWith('[') ? 'is an array; write one object per line' : 'is not a JSON object';
  try {
    if (text.startsWith('{') && JSON.parse(text) !== null) return;
  } catch (error) {
    throw new MillraceError('bad_request', `${place} is not JSON: ${error instanceof Error ? error.message : ''}`);
  }
  throw new MillraceError('bad_request', `${place} ${message}`);
}

interface Sending {
  readonly topic: string;
  /** Of the file. */
  readonly name: string;
  readonly position: number;
  readonly page: Page;
}

async function sendPage(session: Session, server: Server, sending: Sending) {
  const { topic, position, page } = sending;
  const body = Buffer.from(`[${page.texts.join(',')}]`);
  const hash = createHash('sha256')
    .update(JSON.stringify([topic, position]))
    .update(body)
    .digest('hex');
  const headers = { 'idempotency-key': `cli-${hash.slice(0, 40)}` };
  const startedAt = Date.now();
  for (let attempt = 0; ; attempt++) {
    let heard = new Headers();
    try {
      const onHeaders = (received: Headers): void => void (heard = received);
      const call = { params: { name: topic }, body, headers, onHeaders };
      const answer = await server.tenant('POST /bus/topics/{name}', call);
      const [first, last] = 'id' in answer ? [answer.id, answer.id] : [answer.first, answer.last];
      return { first, last, isRepeated: heard.get('idempotent-replayed') === 'true' };
    } catch (error) {
      if (!isWorthRetrying(error) || Date.now() - startedAt > patienceMs) throw byLine(error, sending);
      await pause(retryAfterMs(heard) ?? delayMs(retries, attempt), session.signal);
      session.signal.throwIfAborted();
    }
  }
}

function isWorthRetrying(error: unknown): boolean {
  return isTransient(error) || (error instanceof CallFailed && error.status === 429);
}

function retryAfterMs(headers: Headers): number | undefined {
  const text = headers.get('retry-after') ?? '';
  return /^\d{1,3}$/.test(text) ? Number(text) * 1_000 : undefined;
}

/** `[3].url` becomes `events.ndjson:1004 url`. */
function byLine(error: unknown, { name, page }: Sending): unknown {
  if (!(error instanceof CallFailed) || error.problem?.faults === undefined) return error;
  const nameLine = (text: string): string =>
    text.replaceAll(/\[(\d+)\](\.?)/g, (whole, index: string, dot: string) => {
      const line = page.lines[Number(index)];
      return line === undefined ? whole : `${name}:${line}${dot === '' ? '' : ' '}`;
    });
  const faults = error.problem.faults.map((fault) => ({ ...fault, path: nameLine(fault.path) }));
  return new CallFailed(error.status, { ...error.problem, detail: nameLine(error.problem.detail), faults }, '');
}
