/** `millrace events`: prints events as lines. After a lost connection it resumes without a gap. */
import type { IncomingMessage } from 'node:http';
import { isRecord } from '../../../kernel/text/path.ts';
import { delayMs, reconnect } from '../../../kernel/backoff.ts';
import { pause } from '../../../kernel/service.ts';
import { endingOf, exitCodes } from '../../session/exit.ts';
import { type Io, write } from '../../session/io.ts';
import { chunksOf } from '../../print/lines.ts';
import type { Output } from '../../print/output.ts';
import type { Server } from '../../session/server.ts';
import type { Session } from '../../session/session.ts';
import { readEvents, type ServerEvent } from '../../session/sse.ts';
import { oneLine } from '../../print/width.ts';

interface Wanted {
  readonly topic?: string | undefined;
  readonly after?: number | undefined;
}

/** Ends only with Ctrl-C. The first connection must succeed; later ones are retried without limit. */
export async function followEvents(session: Session, _: readonly string[], wanted: Wanted): Promise<void> {
  const server = await session.connect();
  let lastId = wanted.after?.toString() ?? '';
  let response: IncomingMessage | undefined = await open(server, wanted, lastId);
  for (let attempt = 0; ; attempt++) {
    if (response) {
      for await (const event of readEvents(chunksOf(response))) {
        attempt = 0;
        lastId = event.id || lastId;
        await show(session, event);
      }
      session.signal.throwIfAborted();
      session.out.note('connection lost; reconnecting');
    }
    await pause(delayMs(reconnect, attempt), session.signal);
    session.signal.throwIfAborted();
    response = await open(server, wanted, lastId).catch(unlessUnreachable);
  }
}

function open(server: Server, { topic }: Wanted, lastId: string): Promise<IncomingMessage> {
  const headers = { accept: 'text/event-stream', ...(lastId === '' ? {} : { 'last-event-id': lastId }) };
  return server.stream('/api/events', { query: { topic, after: lastId === '' ? undefined : lastId }, headers });
}

function unlessUnreachable(error: unknown): undefined {
  if (endingOf(error).exitCode !== exitCodes.unreachable) throw error;
}

async function show({ io, out }: { io: Io; out: Output }, event: ServerEvent): Promise<void> {
  const data = parse(event.data);
  await write(io.stdout, `${out.json ? JSON.stringify(data) : describe(event, data, out)}\n`);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Number, time, type, subject, the fields of the body that are not null, and the actor. */
function describe({ id, event }: ServerEvent, data: unknown, { paint }: Output): string {
  const { at = '', type = event, actor = '', subject = '', body = data } = isRecord(data) ? data : {};
  const title = `${paint('dim', `${id} ${text(at)}`)} ${paint('bold', text(type))}`;
  return [title, text(subject), fields(body), actor === '' ? '' : paint('dim', `by ${text(actor)}`)]
    .filter((part) => part !== '')
    .join(' ');
}

function text(value: unknown): string {
  if (value === null || value === undefined) return '';
  return oneLine(typeof value === 'string' ? value : JSON.stringify(value));
}

function fields(body: unknown): string {
  if (!isRecord(body)) return text(body);
  return Object.entries(body)
    .filter(([, value]) => value !== null)
    .map(([name, value]) => `${oneLine(name)}=${text(value)}`)
    .join(' ');
}
