/**
 * Fires missed instants between live firings, at `backfill` priority, taking triggers in turn. The rows record the progress,
 * so a restart resumes where it stopped. Firing an instant twice has no second effect (I1).
 *
 * One turn reads rows, fires a bounded number of runs in one commit, and records the progress, for as many triggers as fit.
 * A trigger is held back while workers do not claim its runs, so that the queue stays short and memory bounded. A trigger
 * whose schedule cannot be compiled rests, while the others go on. After a failed commit, each turn handles one trigger,
 * until the one at fault is known.
 */
import { isRowRejection } from '../../errors.ts';
import { compileSchedule } from '../../calendar/schedule.ts';
import { checkpoint } from '../checkpoints.ts';
import { groupBy } from '../../kernel/group-by.ts';
import type { Service } from '../../kernel/service.ts';
import { type NewCatchup, listPieceInstants, planOf, recut } from './catchup.ts';
import {
  advanceCatchups,
  type CatchupWork,
  dropRemovedCatchups,
  findNextCatchups,
  replaceCatchups,
} from './queries.ts';
import { type CatchupRow, fireTriggers } from '../queries.ts';
import type { Scheduling, Wait } from '../scheduling.ts';
import { specOf } from '../trigger-schedule.ts';
import { instantsCaughtUp } from '../telemetry.ts';

/** A trigger with this many unclaimed runs is held back. */
const maxWaitingRuns = 5_000;
/** Approximate number of runs that one commit creates. */
const runsPerTurn = 1_000;
/** Maximum number of catch-ups read for one turn. The actual number is twice that of the last turn. */
const maxRowsPerTurn = 256;
const heldBackMs = 500;
const brokenRestMs = 30_000;
const sweepMs = 30_000;

/** A part of a piece that is fired in one commit with others. */
interface Slice {
  readonly row: CatchupWork;
  readonly instants: readonly number[];
  /** Instants of the piece that have been fired, including this slice. */
  readonly upTo: number;
  readonly isLast: boolean;
}

/** The work of one turn. */
interface Turn {
  readonly slices: Slice[];
  /** Rows whose triggers were edited, and the rest of each. */
  readonly edited: { readonly row: CatchupWork; readonly rest: NewCatchup | undefined }[];
}

export function catchupService(scheduling: Scheduling): Service {
  const work = new CatchupWorker(scheduling);
  return scheduling.processor('catchup', 'catching up', (signal) => work.turn(signal));
}

class CatchupWorker {
  readonly #scheduling: Scheduling;
  /** Triggers that are held back or broken, and the end of their rest. */
  readonly #resting = new Map<string, number>();
  /** The number of fired instants of a row's next piece. It is lost with the process, and the piece then fires again. */
  readonly #begun = new Map<string, number>();
  #after: CatchupRow | undefined;
  #width = maxRowsPerTurn;

  constructor(scheduling: Scheduling) {
    this.#scheduling = scheduling;
  }

  async turn(signal: AbortSignal): Promise<Wait | undefined> {
    const { db, time } = this.#scheduling;
    const nowMs = time.now();
    for (const [id, untilMs] of this.#resting) if (untilMs <= nowMs) this.#resting.delete(id);
    const limit = this.#width;
    const look = { after: this.#after, resting: [...this.#resting.keys()], limit, most: maxWaitingRuns };
    const rows = await findNextCatchups(db, look);
    const { slices, edited, last } = this.#plan(rows, nowMs);
    if (edited.length > 0) await replaceCatchups(db, edited);
    if (slices.length > 0) await this.#fire(slices);
    const isIdle = rows.length === 0 && this.#after === undefined;
    this.#after = rows.length < limit && last === rows.at(-1) ? undefined : last;
    return isIdle ? this.#idle(signal) : undefined;
  }

  /** Waits until there is new work, or until a trigger has rested. */
  async #idle(signal: AbortSignal): Promise<Wait> {
    const { db, time, work } = this.#scheduling;
    if (this.#resting.size === 0) {
      this.#begun.clear();
      await dropRemovedCatchups(db);
    }
    const untilMs = Math.min(time.now() + sweepMs, ...this.#resting.values());
    return () => work.catchup.wait(Math.max(1, untilMs - time.now()), signal);
  }

  /** Takes rows in order until the turn is full; `last` is the last row that was considered. */
  #plan(rows: readonly CatchupWork[], nowMs: number): Turn & { last: CatchupWork | undefined } {
    const turn: Turn = { slices: [], edited: [] };
    let runs = 0;
    let last: CatchupWork | undefined;
    for (const row of rows) {
      if (runs >= runsPerTurn) break;
      last = row;
      if (row.waiting >= maxWaitingRuns) this.#rest(row, heldBackMs);
      else runs += this.#add(turn, row, runsPerTurn - runs, nowMs);
    }
    return { ...turn, last };
  }

  /** Returns the number of runs that the row adds. */
  #add(turn: Turn, row: CatchupWork, maxRuns: number, nowMs: number): number {
    try {
      const schedule = compileSchedule(specOf(row));
      if (row.plan !== planOf(row)) {
        turn.edited.push({ row, rest: recut(row, row, schedule, nowMs) });
        return 0;
      }
      const edges = Math.max(1, row.edges);
      const piece = listPieceInstants(row, schedule);
      const begun = this.#begun.get(keyOf(row)) ?? 0;
      const instants = piece.slice(begun, begun + Math.max(1, Math.floor(maxRuns / edges)));
      const upTo = begun + instants.length;
      turn.slices.push({ row, instants, upTo, isLast: upTo >= piece.length });
      return instants.length * edges;
    } catch (error) {
      this.#break(row, error);
      return 0;
    }
  }

  async #fire(slices: readonly Slice[]): Promise<void> {
    const { db } = this.#scheduling;
    try {
      checkpoint('catchup.piece');
      for (const [policy, alike] of groupBy(slices, ({ row }) => row.policy)) await this.#fireAlike(policy, alike);
      checkpoint('catchup.fired');
      await advanceCatchups(
        db,
        slices.flatMap(({ row, isLast }) => (isLast ? [row] : [])),
      );
      checkpoint('catchup.advanced');
      for (const { row, upTo, isLast } of slices) {
        if (isLast) this.#begun.delete(keyOf(row));
        else this.#begun.set(keyOf(row), upTo);
      }
      this.#width = Math.min(maxRowsPerTurn, 2 * slices.length);
    } catch (error) {
      // any other error concerns all rows
      if (!isRowRejection(error)) throw error;
      const [only, ...others] = slices;
      if (only !== undefined && others.length === 0) this.#break(only.row, error);
      this.#width = 1;
    }
  }

  /** Fires slices of one policy in one commit: runs that are created together are claimed in one order. */
  async #fireAlike(order: CatchupRow['policy'], slices: readonly Slice[]): Promise<void> {
    const { db, time, ctx, ready, killed: sendKills } = this.#scheduling;
    const firings = slices.flatMap(({ row, instants }) =>
      instants.map((instantMs) => ({ triggerId: row.id, instantMs })),
    );
    const at = new Date(time.now());
    const { fired, created, killed, lanes } = await fireTriggers(db, firings, { priority: 'backfill', order, at });
    ready(created, lanes);
    await sendKills(killed);
    instantsCaughtUp.emit(ctx.telemetry, { tenant: ctx.tenant.id, triggers: fired, runs: created });
  }

  #break(row: CatchupWork, error: unknown): void {
    const about = { err: error, trigger: row.id };
    this.#scheduling.ctx.log.error(about, 'catch-up of a trigger failed, retrying');
    this.#rest(row, brokenRestMs);
  }

  /** The more triggers rest, the less often each is checked. */
  #rest(row: CatchupWork, ms: number): void {
    this.#resting.set(row.trigger_id, this.#scheduling.time.now() + ms + 5 * this.#resting.size);
  }
}

function keyOf(row: CatchupWork): string {
  return `${row.trigger_id} ${row.from_at.getTime()} ${row.to_at.getTime()} ${row.next_piece} ${row.pieces} ${row.plan}`;
}
