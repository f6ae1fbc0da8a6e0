/**
 * The limit by bytes: drops the oldest pieces of the bus log once it is larger than MILLRACE_BUS_MAX_BYTES, down to 90 % of that,
 * regardless of readers.
 *
 * 1. A piece is a partition. Appending closes a partition at a tenth of the limit (`open_bus_log`). The piece with the newest event
 *    stays, because it holds the end of the log.
 * 2. A piece is dropped in one commit with all that follows: readers that lose events move on, their couriers lose the errands, the
 *    gap becomes a dead letter without events, and `bus.dropped` is recorded. So it is reported exactly if it happened, and once.
 *    Other readers do not notice it: their batches keep their ids.
 * 3. The drop needs a moment without readers and writers of the log. It waits at most 200 ms for that, because publishers wait
 *    meanwhile, and is tried again in the next pass. Nobody's statement fails.
 * 4. `queued` stays exact: lost events are counted before, by the revisions in force at their numbers. A reader that moves
 *    meanwhile has its way counted under the locks. A changed subscription begins all over.
 */
import type { EngineContext } from '../../contract/context.ts';
import { isLockTimeout } from '../../errors.ts';
import { type Recording, recording } from '../../events/append.ts';
import { groupBy } from '../../kernel/group-by.ts';
import { newId } from '../../kernel/id.ts';
import { type Db, sql } from '../../kernel/sql.ts';
import { eventsDropped } from '../telemetry.ts';
import * as queries from './drop-queries.ts';
import { type Gap, measureGap, readerKey } from './gap.ts';

const pieceLimits = {
  /** Of the limit: the size at which a piece is closed. */
  pieceShare: 0.1,
  /** An empty piece takes about 40 KiB. */
  minPieceBytes: 131_072,
  /** Of the limit: what remains after a drop. */
  keptShare: 0.9,
  /** How long each attempt waits for locks. */
  lockMs: [20, 50, 100, 200],
} as const;

interface Dropped {
  readonly number: number;
  readonly last: number;
  readonly readers: readonly queries.MovedReader[];
  readonly replays: readonly queries.MovedReplay[];
}

/** Returns the bytes that were dropped. */
export async function dropPieces(ctx: EngineContext, db: Db, maxBytes: number): Promise<number> {
  const { pieceShare, minPieceBytes, keptShare } = pieceLimits;
  await queries.setPieceBytes(db, Math.max(minPieceBytes, Math.floor(maxBytes * pieceShare)));
  const { pieces, open } = await queries.readPieces(db);
  const total = pieces.reduce((sum, { bytes }) => sum + bytes, 0);
  if (total <= maxBytes) return 0;
  let dropped = 0;
  for (const { number, bytes } of pieces) {
    if (total - dropped <= maxBytes * keptShare || number >= open) break;
    if (!(await dropPiece(ctx, db, number))) break;
    dropped += bytes;
  }
  return dropped;
}

/** Returns false if the locks were not free in time. */
async function dropPiece(ctx: EngineContext, db: Db, number: number): Promise<boolean> {
  for (const lockMs of pieceLimits.lockMs) {
    // 0: retention by age has deleted all its events
    const last = (await queries.lastOfPiece(db, number)) ?? 0;
    const gap = await measureGap(db, last);
    try {
      const outcome = await drop(ctx, db, { number, last, gap, lockMs });
      if (outcome === 'changed') continue;
      if (outcome !== 'gone' && last > 0) report(ctx, outcome);
      return true;
    } catch (error) {
      if (!isLockTimeout(error)) throw error;
    }
  }
  ctx.log.warn({ piece: number }, 'bus log over its limit, but its oldest events are in use');
  return false;
}

interface Drop {
  readonly number: number;
  readonly last: number;
  readonly gap: Gap;
  readonly lockMs: number;
}

async function drop(
  ctx: EngineContext,
  db: Db,
  { number, last, gap, lockMs }: Drop,
): Promise<Dropped | 'changed' | 'gone'> {
  const at = new Date(ctx.time.now());
  return recording(db, { actor: 'installation', at }, async (tx) => {
    await tx.exec(sql`select set_config('lock_timeout', ${`${lockMs}ms`}, true)`);
    const state = await queries.lockState(tx);
    if (!(await queries.isPieceThere(tx, number))) return 'gone';
    if (state.revision !== gap.revision) return 'changed';
    const readers = await settleReaders(tx, await queries.lockBehind(tx, last), { gap, last, fanned: state.fanned });
    const losers = readers.filter(({ lost }) => lost > 0);
    const replays = await queries.moveReplays(tx, last);
    await queries.moveReaders(tx, losers, last);
    await queries.insertGaps(
      tx,
      losers.map((reader) => letterOf(reader, last)),
      { last, at },
    );
    await queries.passDropped(tx, last);
    await queries.dropPartition(tx, number);
    const dropped = { number, last, readers: losers, replays };
    if (last > 0) recordDrop(tx, dropped);
    return dropped;
  });
}

/** A reader that has moved since it was counted has lost less by what it has passed. */
async function settleReaders(
  tx: Db,
  readers: readonly queries.LockedReader[],
  { gap, last, fanned }: { readonly gap: Gap; readonly last: number; readonly fanned: number },
): Promise<queries.MovedReader[]> {
  const countedOf = (reader: queries.LockedReader) => gap.readers.get(readerKey(reader));
  const ways = readers.map((reader) => {
    const { subscriber, strand, start: to } = reader;
    return { subscriber, strand, from: countedOf(reader)?.start ?? to, to };
  });
  const passed = await gap.count(tx, ways);
  return readers.map((reader, i) => {
    const lost = (countedOf(reader)?.lost ?? 0) - (passed[i] ?? 0);
    const left = fanned <= last ? 0 : Math.max(0, reader.queued - lost);
    return { ...reader, lost, left };
  });
}

function letterOf(reader: queries.MovedReader, last: number): queries.DroppedLetter {
  const { subscriber, strand, start } = reader;
  return { id: newId(), batch: `${subscriber.slice(-8)}_${strand}_${start + 1}_${last}`, reader };
}

/** One event for each subscriber and replay that has lost events. If none has, one event without a subject. */
function recordDrop(tx: Recording, { last, readers, replays }: Dropped): void {
  const record = (subject: string | null, body: object): void =>
    tx.record('millrace_bus', { type: 'bus.dropped', subject, body: { ...body, last: String(last) } });
  for (const [subscriber, strands] of groupBy(readers, (reader) => reader.subscriber)) {
    const first = String(Math.min(...strands.map(({ start }) => start)) + 1);
    const events = strands.reduce((sum, { lost }) => sum + lost, 0);
    record(subscriber, { subscriber: strands[0]?.name, events, first });
  }
  for (const { id, subscriber, name } of replays) record(subscriber, { subscriber: name, replay: id });
  if (readers.length === 0 && replays.length === 0) record(null, { events: 0 });
}

function report({ log, telemetry, tenant, hints }: EngineContext, { last, readers, replays }: Dropped): void {
  const events = readers.reduce((sum, { lost }) => sum + lost, 0);
  const subscribers = new Set(readers.map(({ subscriber }) => subscriber)).size;
  const fields = { last, undelivered: events, subscribers, replays: replays.length };
  if (events > 0) log.warn(fields, 'bus log over its limit, undelivered events dropped');
  else log.info(fields, 'bus log over its limit, oldest events dropped');
  for (const { name, lost } of readers)
    eventsDropped.emit(telemetry, { tenant: tenant.id, subscriber: name, events: lost });
  hints.send('bus');
  hints.send('events');
}
