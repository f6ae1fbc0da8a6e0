/** Hands runs out (I4): the polls of many workers become one claim per set of lanes. Heartbeats renew the leases. */
import type { Pool } from 'pg';
import type { EngineContext } from '../contract/context.ts';
import { type Heartbeat, largestClaim, type Poll, maxClaimBytes } from '../contract/engine.ts';
import { leaseTimes } from '../contract/lease-times.ts';
import type { ClaimedRun, HeldRun } from '../contract/wire.ts';
import { type Db, onPool, sql } from '../kernel/sql.ts';
import { ClaimFloor } from '../postgres/claim-floor.ts';
import { claimedRun, returnExcess, type HandedOut, listHandedOut } from './hand-out.ts';
import { currentPolls, dealPlaces, dealRows, executesAny, groupByLanes } from './polls.ts';
import { claimed } from './telemetry.ts';

/** Most claims find few runs. They begin with this many places, and use all of them if that is not enough. */
const smallClaim = 32;

/** Data about the claims for a set of lanes. */
interface Memory {
  readonly floor: ClaimFloor<Date>;
  /** The last claim found more than a few runs. */
  busy: boolean;
  /** Runs requested in one statement. Less than `largestClaim` while their params are large. */
  max: number;
}

const maxMemories = 1_000;

/** By pool, because it has the same lifetime, and by lanes. */
const memories = new WeakMap<Pool, Map<string, Memory>>();

function memoryOf(pool: Pool, lanes: readonly string[]): Memory {
  const byLanes = memories.get(pool) ?? new Map<string, Memory>();
  memories.set(pool, byLanes);
  const key = JSON.stringify(lanes);
  // workers come and go, and each may have lanes of its own
  if (byLanes.size >= maxMemories) byLanes.clear();
  const memory = byLanes.get(key) ?? { floor: new ClaimFloor<Date>('live'), busy: false, max: largestClaim };
  byLanes.set(key, memory);
  return memory;
}

/** Whether a claim for these lanes would scan many dead rows if it did not begin at its floor. */
export function isCrowded(pool: Pool, lanes: readonly string[]): boolean {
  return memoryOf(pool, lanes).floor.isCrowded;
}

/** Returns one list per poll, in the order of the polls. */
export async function claimRuns(ctx: EngineContext, engine: string, polls: readonly Poll[]): Promise<ClaimedRun[][]> {
  const groups = groupByLanes(currentPolls(polls));
  const claims = await Promise.all(groups.map((group) => claimFor(ctx, engine, group)));
  const answers = new Map(claims.flat());
  const lists = polls.map((poll) => answers.get(poll) ?? []);
  claimed.emit(ctx.telemetry, { runs: lists.reduce((sum, runs) => sum + runs.length, 0), polls: polls.length });
  return lists;
}

/** Claims for polls of the same lanes. Returns the runs of each poll. */
async function claimFor(ctx: EngineContext, engine: string, polls: readonly Poll[]): Promise<[Poll, ClaimedRun[]][]> {
  const executes = executesAny(polls);
  const rows = await claimGroup(onPool(ctx.pool), polls, ctx);
  return dealRows(polls, rows).map(([poll, own]) => [
    poll,
    own.map((row) => claimedRun(row, { ctx, engine, executes })),
  ]);
}

async function claimGroup(db: Db, polls: readonly Poll[], ctx: EngineContext): Promise<HandedOut[]> {
  const lanes = polls[0]?.lanes ?? [];
  const memory = memoryOf(ctx.pool, lanes);
  const places = dealPlaces(polls, largestClaim);
  const rows: HandedOut[] = [];
  let bytes = 0;
  let size = Math.min(memory.max, memory.busy ? largestClaim : smallClaim);
  while (rows.length < places.length) {
    const wanted = places.slice(rows.length, rows.length + size);
    // claimed runs must reach their worker, even if the rest fails
    const found = await claimPlaces(db, wanted, { lanes, ctx, memory, bytes }).catch((error: unknown) => {
      if (rows.length === 0) throw error;
      ctx.log.warn({ err: error }, 'second part of a claim failed');
      return [];
    });
    if (rows.length === 0) memory.busy = found.length >= smallClaim;
    const fitting = found.filter((row) => row.fits);
    rows.push(...fitting);
    bytes += fitting.reduce((sum, row) => sum + row.bytes, 0);
    if (fitting.length < found.length) await returnExcess(db, found, ctx);
    if (found.length < wanted.length && fitting.length === found.length) break;
    memory.max = nextMax(memory.max, { bytes, fitting: fitting.length, found: found.length });
    size = memory.max;
    if (bytes < maxClaimBytes) continue;
    // more runs may be ready, and no other hint announces them
    ctx.hints.send('ready');
    break;
  }
  return rows;
}

/** The number of runs that fitted, if some did not; twice as many once they are small again. */
function nextMax(max: number, last: { bytes: number; fitting: number; found: number }): number {
  if (last.fitting < last.found) return Math.max(1, last.fitting);
  return last.bytes <= maxClaimBytes / 4 ? Math.min(largestClaim, max * 2) : max;
}

interface PieceOptions {
  readonly lanes: readonly string[];
  readonly ctx: EngineContext;
  readonly memory: Memory;
  /** The size of the params in this claim so far. */
  readonly bytes: number;
}

async function claimPlaces(db: Db, places: readonly Poll[], options: PieceOptions): Promise<HandedOut[]> {
  const { lanes, ctx, bytes } = options;
  const { floor } = options.memory;
  const nowMs = ctx.time.now();
  const startedMs = performance.now();
  const claimed = sql`claim_runs(
    ${lanes}::text[],
    ${places.map((poll) => poll.worker)}::uuid[],
    ${places.map((poll) => poll.incarnation)}::bigint[],
    ${new Date(nowMs + ctx.settings.leaseMs)}::timestamptz,
    ${new Date(nowMs)}::timestamptz,
    coalesce(${floor.current(startedMs)}::timestamptz, '-infinity'))`;
  const rows = await listHandedOut(db, claimed, bytes);
  const atMs = performance.now();
  floor.note(db, { atMs, tookMs: atMs - startedMs }, rows[0]?.rank);
  return rows;
}

type Renewed = { worker: string; cancelled: string[]; mine: string[]; returned: boolean };

/** Renews the leases of these workers. Returns for each the runs that it no longer holds and those that it must kill. */
export async function renewLeases(
  ctx: EngineContext,
  beats: readonly Heartbeat[],
): Promise<{ lost: HeldRun[]; cancel: HeldRun[] }[]> {
  const nowMs = ctx.time.now();
  const db = onPool(ctx.pool);
  const renewed = await db.rows<Renewed>(sql`
    select worker, mine, cancelled, returned
      from renew_leases(
        ${beats.map((beat) => beat.worker)}::uuid[],
        ${beats.map((beat) => beat.incarnation)}::bigint[],
        ${JSON.stringify(beats.map((beat) => beat.holds.map((run) => run.run)))}::jsonb,
        ${leaseTimes(ctx.settings.leaseMs).unlistedMs}::integer * interval '1 millisecond',
        ${new Date(nowMs + ctx.settings.leaseMs)}::timestamptz,
        ${new Date(nowMs)}::timestamptz)`);
  const byWorker = new Map(renewed.map((row) => [row.worker, row]));
  if (renewed.some((row) => row.returned)) ctx.hints.send('ready');
  return beats.map((beat) => signalsFor(beat, byWorker.get(beat.worker)));
}

/** `mine` lists the "run lease" pairs that this incarnation holds. */
function signalsFor(beat: Heartbeat, row: Renewed | undefined): { lost: HeldRun[]; cancel: HeldRun[] } {
  const mine = new Set(row?.mine);
  const cancelled = new Set(row?.cancelled);
  const lost = beat.holds.filter((run) => !mine.has(`${run.run} ${run.lease}`));
  const cancel = beat.holds.filter((run) => cancelled.has(run.run) && mine.has(`${run.run} ${run.lease}`));
  return { lost, cancel };
}

/** Sends a hint for each run that its worker must kill. */
export async function hintCancellations(ctx: EngineContext): Promise<void> {
  for (const { run } of await cancellations(ctx)) ctx.hints.send('cancel', run);
}

/** Running runs that must be killed, with the workers that hold them. */
export async function cancellations(ctx: EngineContext): Promise<{ worker: string; run: HeldRun }[]> {
  const rows = await onPool(ctx.pool).rows<{ id: string; lease: number; worker_id: string }>(sql`
    select id, lease, worker_id from live where cancel and worker_id is not null`);
  return rows.map((row) => ({
    worker: row.worker_id,
    run: { tenant: ctx.tenant.id, run: row.id, lease: row.lease },
  }));
}
