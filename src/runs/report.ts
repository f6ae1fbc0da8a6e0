/**
 * Applies reports (I3). Every gateway applies those that it receives; any number of gateways may do so at once. A report takes
 * effect only if its sender holds the run under the lease that it names.
 */
import type { EngineContext } from '../contract/context.ts';
import type { FromWorker, Reported } from '../contract/engine.ts';
import type { Report } from '../contract/wire.ts';
import { checkpoint } from './checkpoints.ts';
import { loopShare } from '../kernel/process/loop-share.ts';
import { type Db, onPool, sql } from '../kernel/sql.ts';
import { resultFault } from '../runtimes/task/result.ts';
import { tellKilled } from './claim.ts';
import { heldLeases, loseRuns, returnRuns } from './return-runs.ts';
import { reported } from './telemetry.ts';

export async function applyReports(ctx: EngineContext, reports: readonly FromWorker<Report>[]): Promise<Reported> {
  const db = onPool(ctx.pool);
  const returned = reports.filter((report) => report.state === 'returned');
  const lost = reports.filter((report) => report.state === 'lost');
  const final = reports.filter((report) => report.state !== 'returned' && report.state !== 'lost');
  const back = returned.length === 0 ? 0 : await returnRuns(db, returned, new Date(ctx.time.now()));
  const losses = lost.length === 0 ? noLosses : await loseRuns(db, lost, new Date(ctx.time.now()));
  const done = final.length === 0 ? nothing : await finishRuns(db, await checkResults(final), new Date(ctx.time.now()));
  if (done.applied > 0) checkpoint('report.applied');
  // a run that was given up may have started children or a retry
  if (losses.failed > 0) for (const channel of ['retries', 'events'] as const) ctx.hints.send(channel);
  if (back + losses.returned + losses.failed > 0) ctx.hints.send('ready');
  else if (done.created > 0) ctx.hints.send('ready', done.lanes ?? undefined);
  if (done.retries > 0) ctx.hints.send('retries');
  if (done.applied > 0) ctx.hints.send('events');
  // their workers hear of it with a heartbeat otherwise
  if (done.killed > 0) await tellKilled(ctx);
  const applied = done.applied + back + losses.returned + losses.failed;
  reported.emit(ctx.telemetry, { runs: reports.length, applied, created: done.created });
  return { applied, created: done.created };
}

type Finished = { applied: number; created: number; retries: number; killed: number; lanes: string[] | null };
const noLosses = { returned: 0, failed: 0 };
const nothing: Finished = { applied: 0, created: 0, retries: 0, killed: 0, lanes: null };

type CheckedReport = FromWorker<Report> & { readonly fault: string | undefined };

/** Checking a result takes up to 20 ms, and a batch may have hundreds: others go on in between. */
async function checkResults(reports: readonly FromWorker<Report>[]): Promise<CheckedReport[]> {
  const rest = loopShare();
  const checked: CheckedReport[] = [];
  for (const report of reports) {
    checked.push({ ...report, fault: report.result === undefined ? undefined : resultFault(report.result) });
    await rest();
  }
  return checked;
}

function finishRuns(db: Db, reports: readonly CheckedReport[], at: Date): Promise<Finished> {
  return db.one<Finished>(sql`
    select applied, created, retries, killed, lanes
      from finish_runs(
        ${reports.map((r) => r.run)}::uuid[],
        ${heldLeases(reports)},
        ${reports.map((r) => r.state)}::run_state[],
        ${reports.map(reasonOf)}::text[],
        ${reports.map((r) => r.exit_code)}::integer[],
        ${reports.map((r) => r.started_at)}::timestamptz[],
        ${at}::timestamptz,
        ${resultsOf(reports)}::json[])`);
}

/** Null where no report has one: most batches have none. */
function resultsOf(reports: readonly CheckedReport[]): (string | null)[] | null {
  if (reports.every((report) => report.result === undefined)) return null;
  return reports.map(({ result, fault }) => (fault === undefined ? (result ?? null) : null));
}

/** A result that cannot be kept never costs the report: the reason tells of it. */
function reasonOf({ reason, fault }: CheckedReport): string | null {
  const told = reason?.replaceAll('\0', '') ?? null;
  if (fault === undefined) return told;
  return told === null ? `its result ${fault}` : `${told}; its result ${fault}`;
}
