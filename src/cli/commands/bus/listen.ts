/**
 * `millrace listen`: prints events of topics as they are published.
 *
 * 1. It pulls batches as a subscriber of kind `pull`, prints them, and acknowledges them afterwards: what is not printed is not lost.
 * 2. A key has one subscriber, so the root key, which others use as well, creates a client key for the time of the command. The
 *    key and its subscriber are removed at the end, also after Ctrl-C.
 * 3. Any other key subscribes itself, and unsubscribes at the end. If it has a pull subscriber of the same topics already, that
 *    one is read on, and stays. Its deliveries are never taken away from a callback.
 */
import type { Command } from 'commander';
import { z } from 'zod';
import { CallFailed } from '../../../http/client.ts';
import { delayMs, reconnect } from '../../../kernel/backoff.ts';
import { pause } from '../../../kernel/service.ts';
import { MillraceError } from '../../../errors.ts';
import { oneLine } from '../../print/width.ts';
import { byArgument } from '../../session/arguments.ts';
import { endingOf, exitCodes } from '../../session/exit.ts';
import { examples, integer } from '../../session/flags.ts';
import { type Io, write } from '../../session/io.ts';
import type { Server } from '../../session/server.ts';
import { type Session, verb } from '../../session/session.ts';
import { isTransient } from '../runs/follow-runs.ts';
import { parseJsonFlag } from './json-flag.ts';

const flags = z.object({ count: z.int().optional(), filter: z.string().optional() });
type Flags = z.output<typeof flags>;

/** Seconds that a request waits for a batch. */
const waitSeconds = 20;
/** For removing what the command has created, after Ctrl-C as well. */
const cleanupMs = 5_000;

export function addListen(program: Command, io: Io): void {
  const listen = program
    .command('listen')
    .description(
      'Print events of topics as they are published, one per line, until Ctrl-C. Begins with the next event, and needs neither a receiver nor a courier. ' +
        'The root key uses a temporary client key, which is removed at the end.',
    )
    .argument('<topics...>', 'such as orders; millrace_runs and other topics of Millrace, too')
    .option('--count <n>', 'end after so many events', integer(1, Number.MAX_SAFE_INTEGER))
    .option('--filter <json>', 'only events that match; see docs/bus.md')
    .action(verb(io, flags, listenTo));
  examples(listen, [
    ['millrace listen orders', 'in one terminal, millrace publish in another'],
    ["millrace listen orders --json | jq -c '.data'", 'as JSON lines'],
    ['millrace listen orders --count 1', 'wait for one event'],
  ]);
}

async function listenTo(session: Session, topics: readonly string[], options: Flags): Promise<void> {
  const filter = options.filter === undefined ? null : parseJsonFlag('--filter', options.filter);
  const listener = await makeListener(session);
  try {
    await listener.subscribe({ topics: [...new Set(topics)], filter });
    session.out.note(`listening to ${topics.join(', ')}; Ctrl-C ends it`);
    await printEvents(session, listener.server, options.count ?? Number.POSITIVE_INFINITY);
  } finally {
    await listener.remove().catch((error: unknown) => {
      session.out.note(`not removed: ${listener.name} (${endingOf(error).message ?? 'failed'})`);
    });
  }
}

interface Topics {
  readonly topics: string[];
  readonly filter: Record<string, unknown> | null;
}

interface Listener {
  readonly server: Server;
  /** Of what `remove` removes. */
  readonly name: string;
  subscribe(wanted: Topics): Promise<void>;
  remove(): Promise<void>;
}

async function makeListener(session: Session): Promise<Listener> {
  const server = await session.connect();
  const { role } = await server.gateway('GET /api/me');
  return role === 'root' ? makeTemporary(session, server) : makeOwn(session, server);
}

async function makeTemporary(session: Session, root: Server): Promise<Listener> {
  const body = { name: 'listen', role: 'client' as const, tenant: root.tenantName };
  const { id, key } = await root.gateway('POST /api/keys', { body });
  const server = await session.connect({ key });
  return {
    server,
    name: `the temporary key ${id}`,
    subscribe: (wanted) => subscribe(server, wanted),
    async remove() {
      const signal = AbortSignal.timeout(cleanupMs);
      const own = await session.connect({ key, signal });
      await own.tenant('DELETE /bus/subscriber').catch(unlessMissing);
      await (await session.connect({ signal })).gateway('DELETE /api/keys/{id}', { params: { id } });
    },
  };
}

async function makeOwn(session: Session, server: Server): Promise<Listener> {
  let isOurs = false;
  return {
    server,
    name: 'the subscriber of this key',
    async subscribe(wanted) {
      const former = await server.tenant('GET /bus/subscriber').catch(unlessMissing);
      if (former !== undefined) return checkFormer(former, wanted);
      isOurs = true;
      await subscribe(server, wanted);
    },
    async remove() {
      if (!isOurs) return;
      const own = await session.connect({ signal: AbortSignal.timeout(cleanupMs) });
      await own.tenant('DELETE /bus/subscriber').catch(unlessMissing);
    },
  };
}

/** Small batches without a window, because a person is waiting. */
async function subscribe(server: Server, { topics, filter }: Topics): Promise<void> {
  const body = { topics, filter, kind: 'pull' as const, timeout: 0 };
  await byArgument(server.tenant('POST /bus/subscription', { body }), {
    'body.topics': 'topics',
    'body.filter': '--filter',
  });
}

interface Former {
  readonly subscriber: string;
  readonly kind: string;
  readonly topics: readonly string[];
  readonly filter: Record<string, unknown> | null;
}

function checkFormer(former: Former, wanted: Topics): void {
  const describe = (topics: readonly string[], filter: unknown): string => JSON.stringify([topics.toSorted(), filter]);
  const isSame = describe(former.topics, former.filter) === describe(wanted.topics, wanted.filter);
  if (former.kind === 'pull' && isSame) return;
  const what = former.kind === 'pull' ? `reads ${former.topics.join(', ')} by pull` : 'delivers to a callback';
  throw new MillraceError(
    'conflict',
    `this key has the subscriber ${former.subscriber}, which ${what}; listen with another key: millrace key create --role client`,
  );
}

function unlessMissing(error: unknown): undefined {
  if (!(error instanceof CallFailed) || error.status !== 404) throw error;
}

async function printEvents(session: Session, server: Server, most: number): Promise<void> {
  let left = most;
  for (let failures = 0; left > 0; ) {
    session.signal.throwIfAborted();
    try {
      left -= await printBatch(session, server, left);
      failures = 0;
    } catch (error) {
      if (!isTransient(error) && endingOf(error).exitCode !== exitCodes.unreachable) throw error;
      session.signal.throwIfAborted();
      if (failures++ === 0) session.out.note('connection lost; reconnecting');
      await pause(delayMs(reconnect, failures), session.signal);
    }
  }
}

/** Returns how many it printed. A batch of which only a part was wanted is given back. */
async function printBatch(session: Session, server: Server, most: number): Promise<number> {
  const batch: Batch | undefined = await server.tenant('GET /bus/subscriber/batch', { query: { wait: waitSeconds } });
  if (batch === undefined) return 0;
  const events = batch.events.slice(0, most);
  for (const event of events) await write(session.io.stdout, `${renderEvent(session, event)}\n`);
  const params = { id: batch.id };
  const { lease } = batch;
  if (events.length < batch.events.length)
    await server.tenant('POST /bus/subscriber/batch/{id}/nack', { params, body: { lease } });
  else await server.tenant('POST /bus/subscriber/batch/{id}/ack', { params, body: { lease } });
  return events.length;
}

interface BusEvent {
  readonly id: string;
  readonly t: number;
  readonly topic: string;
  readonly type: string;
  readonly url: string;
  readonly data?: Record<string, unknown> | undefined;
}

interface Batch {
  readonly id: string;
  readonly lease: number;
  readonly events: readonly BusEvent[];
}

/** `17 2030-01-31T00:00:00.000Z orders update https://shop.example/orders/1 {"total":5}` */
function renderEvent({ out }: Session, event: BusEvent): string {
  if (out.json) return JSON.stringify(event);
  const { id, t, topic, type, url, data } = event;
  const heading = `${out.paint('dim', `${id} ${formatTime(t)}`)} ${oneLine(topic)} ${out.paint('bold', oneLine(type))}`;
  return `${heading} ${oneLine(url)}${data === undefined ? '' : ` ${oneLine(JSON.stringify(data))}`}`;
}

/** A publisher may choose any number as its timestamp. */
function formatTime(t: number): string {
  const date = new Date(t);
  return Number.isNaN(date.getTime()) ? String(t) : date.toISOString();
}
