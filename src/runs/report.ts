/**
 * Applies reports (I3). Every gateway applies the reports that it receives; any number of gateways may do so at once. A report takes
 * effect only if its sender holds the run under the lease that it names.
 */
import type { EngineContext } from '../contract/context.ts';
import type { FromWorker, Poll, Reported } from '../contract/engine.ts';
import type { Report } from '../contract/wire.ts';
import { checkpoint } from './checkpoints.ts';
import { Slices } from '../kernel/process/slices.ts';
import { type Db, onPool, sql } from '../kernel/sql.ts';
import { resultFault } from '../runtimes/task/result.ts';
import { hintCancellations } from './claim.ts';
import { dealHanded, groupPolls, type Handed, handOverArguments, lanesLeft } from './hand-over.ts';
import { holdersOf, loseRuns, returnRuns, type Told } from './return-runs.ts';
import { reported } from './telemetry.ts';

/** With polls, the commit may hand runs out for them (`hand-over.ts`). */
export async function applyReports(
  ctx: EngineContext,
  engine: string,
  reports: readonly FromWorker<Report>[],
  polls: readonly Poll[] = [],
): Promise<Reported> {
  const db = onPool(ctx.pool);
  const returned = reports.filter((report) => report.state === 'returned');
  const lost = reports.filter((report) => report.state === 'lost');
  const final = reports.filter((report) => report.state !== 'returned' && report.state !== 'lost');
  const groups = groupPolls(ctx, polls);
  const back = returned.length === 0 ? noReturns : await returnRuns(db, returned, new Date(ctx.time.now()));
  const losses = lost.length === 0 ? noLosses : await loseRuns(db, lost, new Date(ctx.time.now()));
  const faults = await checkResults(final);
  const done = final.length === 0 ? nothing : await finishRuns(db, final, { ctx, groups, faults });
  if (done.applied > 0) checkpoint('report.applied');
  // a run that was given up may have started children or a retry
  if (losses.failed > 0) for (const channel of ['retries', 'events'] as const) ctx.hints.send(channel);
  if (back.returned + losses.returned + losses.failed > 0) ctx.hints.send('ready');
  else hintReady(ctx, done, { polls, groups });
  if (done.retries > 0) ctx.hints.send('retries');
  if (done.applied > 0) ctx.hints.send('events');
  hintOwners(ctx, [back, losses, done]);
  // without the hint, their workers get the kill with a heartbeat
  if (done.killed > 0)
    await hintCancellations(ctx).catch((error: unknown) => ctx.log.warn({ err: error }, 'cancellations not announced'));
  const applied = done.applied + back.returned + losses.returned + losses.failed;
  reported.emit(ctx.telemetry, { runs: reports.length, applied, created: done.created });
  const byPoll = await dealHanded(groups, done.handed ?? [], { db, ctx, engine });
  return { applied, created: done.created, runs: polls.map((poll) => byPoll.get(poll) ?? []) };
}

function hintReady({ hints }: EngineContext, { created, lanes, handed }: Finished, polls: Polls): void {
  const readied = created === 0 ? [] : (lanes ?? undefined);
  const left = lanesLeft(readied, { ...polls, handed: handed ?? [] });
  if (left?.length !== 0) hints.send('ready', left);
}

/** Executions whose nodes' runs have ended have an answer in their inbox. */
function hintOwners({ conductors, tenant }: EngineContext, told: readonly Told[]): void {
  const owners = told.flatMap((each) => each.owners ?? []);
  if (owners.length > 0) conductors?.hint(tenant.id, [...new Set(owners)]);
}

interface Polls {
  readonly polls: readonly Poll[];
  readonly groups: readonly Poll[][];
}

type Finished = Told & {
  applied: number;
  created: number;
  retries: number;
  killed: number;
  lanes: string[] | null;
  handed: Handed[] | null;
};
const noReturns = { returned: 0, owners: null };
const noLosses = { returned: 0, failed: 0, owners: null };
const nothing: Finished = {
  applied: 0,
  created: 0,
  retries: 0,
  killed: 0,
  lanes: null,
  handed: null,
  owners: null,
};

/** The faults of results that cannot be stored. */
type Faults = ReadonlyMap<Report, string>;

/** Checking a result takes up to 20 ms, and a batch may have hundreds, so other work runs in between. */
async function checkResults(reports: readonly Report[]): Promise<Faults> {
  const slices = new Slices();
  const faults = new Map<Report, string>();
  for (const report of reports) {
    if (report.result === undefined) continue;
    const fault = resultFault(report.result);
    if (fault !== undefined) faults.set(report, fault);
    if (slices.isOver) await slices.pause();
  }
  return faults;
}

interface Finishing {
  readonly ctx: EngineContext;
  readonly groups: readonly Poll[][];
  readonly faults: Faults;
}

function finishRuns(db: Db, reports: readonly FromWorker<Report>[], how: Finishing): Promise<Finished> {
  const { ctx, groups, faults } = how;
  const nowMs = ctx.time.now();
  return db.one<Finished>(sql`
    select applied, created, retries, killed, lanes, handed, owners
      from finish_runs(
        ${reports.map((r) => r.run)}::uuid[],
        ${reports.map((r) => r.lease)}::integer[],
        ${reports.map((r) => r.state)}::run_state[],
        ${reports.map((r) => reasonOf(r, faults))}::text[],
        ${reports.map((r) => r.exit_code)}::integer[],
        ${reports.map((r) => r.started_at)}::timestamptz[],
        ${new Date(nowMs)}::timestamptz,
        ${resultsOf(reports, faults)}::json[],
        ${holdersOf(reports)}::uuid[],
        ${handOverArguments(ctx, groups, nowMs)})`);
}

/** Null if no report has a result, as in most batches. */
function resultsOf(reports: readonly Report[], faults: Faults): (string | null)[] | null {
  if (reports.every((report) => report.result === undefined)) return null;
  return reports.map((report) => (faults.has(report) ? null : (report.result ?? null)));
}

/** A result that cannot be stored never rejects the report: its fault is added to the reason. */
function reasonOf(report: Report, faults: Faults): string | null {
  const fault = faults.get(report);
  const reason = report.reason?.replaceAll('\0', '') ?? null;
  if (fault === undefined) return reason;
  return reason === null ? `its result ${fault}` : `${reason}; its result ${fault}`;
}
