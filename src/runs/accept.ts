/**
 * Offers of runs, and their acceptance. An offer is a reading of the queue: it locks nothing and promises nothing. A worker that
 * accepts it gets the run if the run is still ready under the lease of the offer. At most one worker gets it (I4).
 */
import type { EngineContext } from '../contract/context.ts';
import type { Accept, Offer } from '../contract/engine.ts';
import type { ClaimedRun } from '../contract/wire.ts';
import { onPool, sql } from '../kernel/sql.ts';
import { claimedRun, returnExcess, type HandedOut, listHandedOut } from './hand-out.ts';

/** The result may contain runs of paused jobs. They are parked when a worker accepts or claims them. */
export function listOffers(
  { pool }: EngineContext,
  lane: string,
  most: number,
  without: ReadonlySet<string>,
): Promise<Offer[]> {
  return onPool(pool).rows<Offer>(sql`
    select id as run, lease, task_id as task, version, priority
      from live
     where lane = ${lane} and worker_id is null and not parked and gate is null
       and id <> all (${[...without]}::uuid[])
     order by rank, id
     limit ${most}`);
}

/** Returns one list per wish, in the order of the wishes. */
export async function acceptRuns(
  ctx: EngineContext,
  engine: string,
  wishes: readonly Accept[],
): Promise<ClaimedRun[][]> {
  const db = onPool(ctx.pool);
  const nowMs = ctx.time.now();
  const wanted = wishes.flatMap((wish, place) => wish.runs.map((offer) => ({ place, offer })));
  const found = await listHandedOut(
    db,
    sql`accept_runs(
      ${wanted.map(({ offer }) => offer.run)}::uuid[],
      ${wanted.map(({ offer }) => offer.lease)}::integer[],
      ${wanted.map(({ place }) => place)}::integer[],
      ${JSON.stringify(wishes.map((wish) => wish.lanes))}::jsonb,
      ${wishes.map((wish) => wish.worker)}::uuid[],
      ${wishes.map((wish) => wish.incarnation)}::bigint[],
      ${new Date(nowMs + ctx.settings.leaseMs)}::timestamptz,
      ${new Date(nowMs)}::timestamptz)`,
    0,
  );
  const fitting = found.filter((row) => row.fits);
  if (fitting.length < found.length) await returnExcess(db, found, ctx);
  ctx.telemetry.emit('claimed', { runs: fitting.length, polls: wishes.length });
  return deal(fitting, wishes).map((rows) => rows.map((row) => claimedRun(row, { ctx, engine, executes: true })));
}

/** Each run goes to the first wish for it, as the database decided. */
function deal(rows: readonly HandedOut[], wishes: readonly Accept[]): HandedOut[][] {
  const left = new Map(rows.map((row) => [keyOf(row.id, row.lease - 1), row]));
  return wishes.map(({ runs }) =>
    runs.flatMap(({ run, lease }) => {
      const key = keyOf(run.toLowerCase(), lease);
      const row = left.get(key);
      left.delete(key);
      return row ?? [];
    }),
  );
}

const keyOf = (run: string, lease: number): string => `${run} ${lease}`;
