/**
 * Hands runs out within the commit that applies reports (`sql/hand_over.sql`). The worker of a parent run usually gets the
 * child with the answer to its report: one commit and one request instead of two of each.
 *
 * Runs leave in the order of a claim, so that none overtakes the queue, a gate or a priority.
 */
import type { EngineContext } from '../contract/context.ts';
import { largestHandOver, maxClaimBytes, type Poll } from '../contract/engine.ts';
import type { ClaimedRun } from '../contract/wire.ts';
import { type Db, type Sql, sql } from '../kernel/sql.ts';
import { isCrowded } from './claim.ts';
import { claimedRun, returnExcess, type HandedOut } from './hand-out.ts';
import { countPlaces, currentPolls, dealPlaces, dealRows, executesAny, groupByLanes } from './polls.ts';
import { claimed, handedOver } from './telemetry.ts';

/** The answer of `hand_over` for a set of lanes. */
export interface Handed {
  readonly runs: readonly Row[];
  /** No ready run was left in these lanes. */
  readonly exhausted: boolean;
}
type Row = Omit<HandedOut, 'instant' | 'rank'> & { readonly instant: string | null };

/** Polls by set of lanes, as far as runs may be handed over for them. */
export function groupPolls(ctx: EngineContext, polls: readonly Poll[]): Poll[][] {
  return groupByLanes(currentPolls(polls)).filter(
    (group) => !isCrowded(ctx.pool, lanesOf(group)) && group.some(({ free }) => free > 0),
  );
}

/** The last arguments of `finish_runs`: an array, as text, for each group. */
export function handOverArguments(ctx: EngineContext, groups: readonly Poll[][], nowMs: number): Sql {
  if (groups.length === 0)
    return sql`null::text[], null::text[], null::text[], null::text[], null::timestamptz, null::integer`;
  const places = groups.map((group) => countPlaces(dealPlaces(group, largestHandOver)));
  const until = new Date(nowMs + ctx.settings.leaseMs);
  return sql`
    ${groups.map((group) => arrayText(lanesOf(group).map(quoted)))}::text[],
    ${places.map((each) => arrayText(each.map(([{ worker }]) => worker)))}::text[],
    ${places.map((each) => arrayText(each.map(([{ incarnation }]) => incarnation)))}::text[],
    ${places.map((each) => arrayText(each.map(([, free]) => free)))}::text[],
    ${until}::timestamptz, ${maxClaimBytes}::integer`;
}

/** An array as PostgreSQL reads it. */
function arrayText(elements: readonly (string | number)[]): string {
  return `{${elements.join(',')}}`;
}

function quoted(text: string): string {
  return `"${text.replaceAll(/["\\]/g, '\\$&')}"`;
}

interface HandOver {
  readonly db: Db;
  readonly ctx: EngineContext;
  readonly engine: string;
}

/** Assigns the runs to polls. Runs that do not fit into an answer return to the queue. */
export async function dealHanded(
  groups: readonly Poll[][],
  handed: readonly Handed[],
  { db, ctx, engine }: HandOver,
): Promise<Map<Poll, ClaimedRun[]>> {
  const rows = handed.flatMap(({ runs }) => runs);
  if (rows.some((row) => !row.fits)) {
    await returnExcess(db, rows, ctx);
    ctx.hints.send('ready');
  }
  const byPoll = new Map<Poll, ClaimedRun[]>();
  groups.forEach((polls, i) => {
    const executes = executesAny(polls);
    const fitting = (handed[i]?.runs ?? []).filter((row) => row.fits);
    for (const [poll, own] of dealRows(polls, fitting))
      byPoll.set(
        poll,
        own.map((row) => claimedRun({ ...row, instant: dateOf(row.instant) }, { ctx, engine, executes })),
      );
  });
  const runs = rows.filter((row) => row.fits).length;
  if (runs > 0) {
    handedOver.emit(ctx.telemetry, { runs });
    claimed.emit(ctx.telemetry, { runs, polls: byPoll.size });
  }
  return byPoll;
}

/**
 * The lanes in which runs may still be ready; undefined: any. `lanes`: those in which runs became ready. Runs may also be left in
 * lanes of the polls: there were not enough places, another transaction had locked the lease of a worker, or the
 * queue was crowded with dead rows and was not searched.
 */
export function lanesLeft(
  lanes: readonly string[] | undefined,
  { polls, groups, handed }: { polls: readonly Poll[]; groups: readonly Poll[][]; handed: readonly Handed[] },
): readonly string[] | undefined {
  const empty = new Set(groups.flatMap((group, i) => (handed[i]?.exhausted === true ? lanesOf(group) : [])));
  const asked = polls.flatMap((poll) => poll.lanes);
  return lanes && [...new Set([...lanes, ...asked])].filter((lane) => !empty.has(lane));
}

function lanesOf([poll]: readonly Poll[]): readonly string[] {
  return poll?.lanes ?? [];
}

function dateOf(text: string | null): Date | null {
  return text === null ? null : new Date(text);
}
