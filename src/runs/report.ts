/**
 * Applying reports (I3): whoever receives one applies it by this; any number of appliers is safe. A report takes effect only
 * if its sender holds the run under the lease that it names.
 */
import type { EngineContext } from '../contract/context.ts';
import type { FromWorker, Reported } from '../contract/engine.ts';
import type { Report } from '../contract/wire.ts';
import { checkpoint } from './checkpoints.ts';
import { type Db, onPool, sql } from '../kernel/sql.ts';
import { tellKilled } from './claim.ts';
import { heldLeases, returnRuns } from './return-runs.ts';
import { reported } from './telemetry.ts';

export async function applyReports(ctx: EngineContext, reports: readonly FromWorker<Report>[]): Promise<Reported> {
  const db = onPool(ctx.pool);
  const returned = reports.filter((report) => report.state === 'returned');
  const final = reports.filter((report) => report.state !== 'returned');
  const back = returned.length === 0 ? 0 : await returnRuns(db, returned, new Date(ctx.time.now()));
  const done = final.length === 0 ? nothing : await finishRuns(db, final, new Date(ctx.time.now()));
  if (done.applied > 0) checkpoint('report.applied');
  if (back > 0) ctx.hints.send('ready');
  else if (done.created > 0) ctx.hints.send('ready', done.lanes ?? undefined);
  if (done.retries > 0) ctx.hints.send('retries');
  if (done.applied > 0) ctx.hints.send('events');
  // their workers hear of it with a heartbeat otherwise
  if (done.killed > 0) await tellKilled(ctx);
  reported.emit(ctx.telemetry, { runs: reports.length, applied: done.applied + back, created: done.created });
  return { applied: done.applied + back, created: done.created };
}

type Finished = { applied: number; created: number; retries: number; killed: number; lanes: string[] | null };
const nothing: Finished = { applied: 0, created: 0, retries: 0, killed: 0, lanes: null };

function finishRuns(db: Db, reports: readonly FromWorker<Report>[], at: Date): Promise<Finished> {
  return db.one<Finished>(sql`
    select applied, created, retries, killed, lanes
      from finish_runs(
        ${reports.map((r) => r.run)}::uuid[],
        ${heldLeases(reports)},
        ${reports.map((r) => r.state)}::run_state[],
        ${reports.map((r) => r.reason?.replaceAll('\0', '') ?? null)}::text[],
        ${reports.map((r) => r.exit_code)}::integer[],
        ${reports.map((r) => r.started_at)}::timestamptz[],
        ${at}::timestamptz)`);
}
