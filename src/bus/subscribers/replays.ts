/**
 * Starts and cancels replays. A replay is a row and an errand in one commit; couriers do the work, beside the ordinary deliveries.
 *
 * A replay of what was not delivered sends the dead letters within its range, the oldest first, under the ids of their batches. Each
 * is deleted once it is accepted.
 */
import { MillraceError } from '../../errors.ts';
import { recording } from '../../events/append.ts';
import { newId } from '../../kernel/id.ts';
import { type Db, sql } from '../../kernel/sql.ts';
import { replayKey } from '../errand-keys.ts';
import type { Author, BusContext } from './context.ts';
import { pushErrands, removeIdleErrands } from './errands.ts';
import type { Subscriber } from './queries.ts';

export interface ReplayRange {
  /** Exclusive. */
  readonly from: number;
  readonly to: number;
  readonly onlyUndelivered: boolean;
}

/** Running replays of one subscriber. Each takes its share of the receiver's time. */
const maxRunning = 10;

export async function startReplay(
  ctx: BusContext,
  author: Author,
  { id: subscriber, name, kind }: Subscriber,
  range: ReplayRange,
): Promise<string> {
  if (kind === 'pull') {
    throw new MillraceError('conflict', 'a subscriber of kind `pull` rewinds instead: resume it with `from`');
  }
  const id = newId();
  await recording(ctx.db, author, async (tx) => {
    await lockSubscriber(tx, subscriber);
    if ((await countRunning(tx, subscriber)) >= maxRunning) {
      throw new MillraceError('conflict', `${maxRunning} replays of the subscriber are running; cancel one or wait`);
    }
    await insertReplay(tx, { id, subscriber, ...range }, author);
    await pushErrands(tx, 'main', [replayKey(id)]);
    const body = { name, replay: id, from: range.from, to: range.to, only_undelivered: range.onlyUndelivered };
    tx.record('millrace_bus', { type: 'replay.started', subject: subscriber, body });
  });
  ctx.hints.send('bus');
  return id;
}

/** Its courier notices when it writes the next step. */
export async function cancelReplay(ctx: BusContext, author: Author, subscriber: Subscriber, id: string) {
  await recording(ctx.db, author, async (tx) => {
    const cancelled = await tx.exec(sql`
      update replay set state = 'cancelled'
       where id = ${id} and subscriber_id = ${subscriber.id} and state = 'running'`);
    if (cancelled === 0) {
      const known = await tx.maybeOne<{ state: string }>(sql`
        select state from replay where id = ${id} and subscriber_id = ${subscriber.id}`);
      if (known === undefined) throw new MillraceError('not_found', `replay not found: ${id}`);
      throw new MillraceError('conflict', `the replay is ${known.state}`);
    }
    await removeIdleErrands(tx, [replayKey(id)]);
    const body = { name: subscriber.name, replay: id };
    tx.record('millrace_bus', { type: 'replay.cancelled', subject: subscriber.id, body });
  });
  ctx.hints.send('bus');
}

/** Starts of replays take turns, so that their number is bounded. */
async function lockSubscriber(tx: Db, id: string): Promise<void> {
  const found = await tx.maybeOne(sql`select id from subscriber where id = ${id} for update`);
  if (found === undefined) throw new MillraceError('not_found', 'subscriber not found');
}

async function countRunning(tx: Db, subscriber: string): Promise<number> {
  const row = await tx.one<{ n: number }>(sql`
    select count(*)::integer as n from replay where subscriber_id = ${subscriber} and state = 'running'`);
  return row.n;
}

async function insertReplay(
  tx: Db,
  replay: ReplayRange & { readonly id: string; readonly subscriber: string },
  { actor, at }: Author,
): Promise<void> {
  await tx.exec(sql`
    insert into replay (id, subscriber_id, from_seq, to_seq, pos, only_undelivered, by, at)
    values (${replay.id}, ${replay.subscriber}, ${replay.from}, ${replay.to}, ${replay.from}, ${replay.onlyUndelivered},
            ${actor}, ${at})`);
}
