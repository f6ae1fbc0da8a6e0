/** The statements about errands: one function of the database each (see sql/). All take the lock order of their function. */
import { type Db, sql } from '../kernel/sql.ts';
import {
  errandLimits,
  type ErrandQueue,
  type ErrandState,
  type ErrandWish,
  type HeldErrand,
  type NamedErrand,
  type PoisonedErrand,
  type ReturnedErrand,
  type TakenErrand,
} from './contract.ts';
import type { Sight, Start } from './ready-floor.ts';

/** Lists of the same length; null: none was ready. */
type TakenRow = {
  readonly keys: readonly string[] | null;
  readonly attempts: readonly number[];
  readonly lease: number;
  readonly last_id: number;
  readonly passed: number | null;
  readonly is_settled: boolean | null;
  readonly horizon: string;
};

export interface Taken {
  readonly errands: TakenErrand[];
  readonly sight: Sight;
}

const keysOf = (held: readonly { readonly key: string }[]): string[] => held.map(({ key }) => key);
const leasesOf = (held: readonly HeldErrand[]): number[] => held.map(({ lease }) => lease);

export async function pushErrands(db: Db, queue: ErrandQueue, wishes: readonly ErrandWish[]): Promise<number> {
  const times = wishes.map(({ runAt }) => (runAt === undefined ? null : new Date(runAt)));
  const { n } = await db.one<{ n: number }>(sql`
    select push_errands(${queue}, ${keysOf(wishes)}::text[], ${times}::timestamptz[]) as n`);
  return n;
}

export async function promoteErrands(db: Db, queue: ErrandQueue, keys: readonly string[]): Promise<number> {
  const { n } = await db.one<{ n: number }>(sql`select promote_errands(${queue}, ${keys}::text[]) as n`);
  return n;
}

export async function readyDueErrands(db: Db, queue: ErrandQueue, at: Date, most: number): Promise<number> {
  const { n } = await db.one<{ n: number }>(sql`
    select ready_due_errands(${queue}, ${at}::timestamptz, ${most}::integer) as n`);
  return n;
}

export async function nextDueErrand(db: Db, queue: ErrandQueue): Promise<Date | null> {
  const { at } = await db.one<{ at: Date | null }>(sql`select next_due_errand(${queue}) as at`);
  return at;
}

export async function acquireErrands(
  db: Db,
  queue: ErrandQueue,
  by: { readonly worker: string; readonly most: number; readonly at: Date; readonly start: Start },
): Promise<Taken> {
  const { floor, horizon } = by.start;
  const row = await db.one<TakenRow>(sql`
    select keys, attempts, lease, last_id, passed, is_settled, horizon::text as horizon
      from acquire_errands(
        ${queue}, ${by.worker}::uuid, ${by.most}::integer, ${by.at}::timestamptz, ${floor}::bigint, ${horizon}::xid8)`);
  const { keys, attempts, lease, last_id: last, passed, is_settled: isSettled, horizon: next } = row;
  return {
    errands: (keys ?? []).map((key, i) => ({ key, lease, attempts: attempts[i] ?? 0 })),
    sight: { lastId: last, passed, isSettled: isSettled === true, horizon: next },
  };
}

/** Positions, from 1; null: none. */
interface Acked {
  /** The worker no longer held these. */
  readonly lost: readonly number[] | null;
  /** These were pushed while they were held, and still are. */
  readonly pushed: readonly number[] | null;
}

export function ackErrands(db: Db, queue: ErrandQueue, worker: string, held: readonly HeldErrand[]): Promise<Acked> {
  return db.one<Acked & object>(sql`
    select lost, pushed
      from ack_errands(${queue}, ${worker}::uuid, ${keysOf(held)}::text[], ${leasesOf(held)}::integer[])`);
}

/** Returns the positions, from 1, of those that the worker no longer held; null: it held all. So do the next two. */
export async function renewErrands(
  db: Db,
  queue: ErrandQueue,
  worker: string,
  held: readonly HeldErrand[],
): Promise<number[] | null> {
  const { lost } = await db.one<{ lost: number[] | null }>(sql`
    select renew_errands(${queue}, ${worker}::uuid, ${keysOf(held)}::text[], ${leasesOf(held)}::integer[]) as lost`);
  return lost;
}

export async function nackErrands(
  db: Db,
  queue: ErrandQueue,
  worker: string,
  held: readonly ReturnedErrand[],
): Promise<number[] | null> {
  const { lost } = await db.one<{ lost: number[] | null }>(sql`
    select nack_errands(
      ${queue},
      ${worker}::uuid,
      ${keysOf(held)}::text[],
      ${leasesOf(held)}::integer[],
      ${held.map(({ runAt }) => new Date(runAt))}::timestamptz[],
      ${held.map(({ reason }) => storableReason(reason))}::text[]) as lost`);
  return lost;
}

/** PostgreSQL stores no zero characters. */
function storableReason(reason: string | undefined): string | null {
  return reason === undefined ? null : reason.replaceAll('\0', '').slice(0, errandLimits.reasonChars);
}

export async function noteErrandProgress(
  db: Db,
  queue: ErrandQueue,
  worker: string,
  held: readonly HeldErrand[],
): Promise<number[] | null> {
  const { lost } = await db.one<{ lost: number[] | null }>(sql`
    select note_errand_progress(
      ${queue}, ${worker}::uuid, ${keysOf(held)}::text[], ${leasesOf(held)}::integer[]) as lost`);
  return lost;
}

/** Returns the positions, from 1, of the errands that the worker has lost. */
export async function beatErrands(
  db: Db,
  worker: string,
  held: readonly NamedErrand[],
  times: { readonly at: Date; readonly unnamedMs: number; readonly mostLosses: number },
): Promise<number[]> {
  const { lost } = await db.one<{ lost: number[] }>(sql`
    select beat_errands(
      ${worker}::uuid,
      ${held.map(({ queue }) => queue)}::text[],
      ${keysOf(held)}::text[],
      ${leasesOf(held)}::integer[],
      ${times.at}::timestamptz,
      ${times.unnamedMs}::integer * interval '1 millisecond',
      ${times.mostLosses}::integer) as lost`);
  return lost;
}

export async function scrubErrands(
  db: Db,
  queue: ErrandQueue,
  by: { readonly silentBefore: Date; readonly mostLosses: number; readonly lost: readonly string[] },
): Promise<number> {
  const { n } = await db.one<{ n: number }>(sql`
    select scrub_errands(
      ${queue}, ${by.silentBefore}::timestamptz, ${by.mostLosses}::integer, ${by.lost}::uuid[]) as n`);
  return n;
}

export function listPoisoned(db: Db, queue: ErrandQueue): Promise<PoisonedErrand[]> {
  return db.rows(sql`
    select key, losses, reason from errand where queue = ${queue} and state = 'x' order by key limit 1000`);
}

/** Returns the keys of those that were poisoned. */
export async function reviveErrands(db: Db, queue: ErrandQueue, keys: readonly string[]): Promise<string[]> {
  const { revived } = await db.one<{ revived: string[] | null }>(sql`
    select revive_errands(${queue}, ${keys}::text[]) as revived`);
  return revived ?? [];
}

export async function countErrands(db: Db, queue: ErrandQueue): Promise<Record<ErrandState, number>> {
  return db.one(sql`select scheduled, ready, pending, poisoned from count_errands(${queue})`);
}
