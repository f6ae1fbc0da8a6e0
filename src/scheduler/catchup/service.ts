/**
 * Catch-up: missed instants are fired between live firings, at `backfill` priority, every trigger's in turn. How far it
 * has come is in the rows, so a restart goes on where it stopped; what is fired twice has no second effect (I1).
 *
 * One turn is one look, one commit of a bounded number of runs, and one note of it, over as many triggers as fit. A trigger
 * whose runs are not taken is held back, so that the queue stays short and memory bounded, and one that cannot be
 * understood rests; the others go on meanwhile. Where a commit fails, the next turns are of one trigger each, until it is
 * known whose fault that is.
 */
import { isRowRejection } from '../../errors.ts';
import { compileSchedule } from '../../calendar/schedule.ts';
import { checkpoint } from '../checkpoints.ts';
import { groupBy } from '../../kernel/group-by.ts';
import type { Service } from '../../kernel/service.ts';
import { type NewCatchup, pieceInstantsOf, planOf, recut } from './catchup.ts';
import { advanceCatchups, type CatchupWork, dropRemovedCatchups, nextCatchups, replaceCatchups } from './queries.ts';
import { type CatchupRow, fireTriggers } from '../queries.ts';
import type { Scheduling, Wait } from '../scheduling.ts';
import { specOf } from '../spec.ts';
import { instantsCaughtUp } from '../telemetry.ts';

/** With so many runs that nobody has taken, a trigger is held back. */
const mostWaiting = 5_000;
/** About how many runs one commit makes. */
const turnRuns = 1_000;
/** How many catch-ups are looked at together: as many as lately made up a turn, and more. */
const widest = 256;
const heldMs = 500;
const brokenMs = 30_000;
const sweepMs = 30_000;

/** A part of a piece, which is fired in one commit with others. */
interface Slice {
  readonly row: CatchupWork;
  readonly instants: readonly number[];
  /** Of its piece, this included, so many have been fired. */
  readonly upTo: number;
  readonly isLast: boolean;
}

/** What one turn does. */
interface Turn {
  readonly slices: Slice[];
  /** Rows whose triggers were edited, and what is left of them. */
  readonly edited: { readonly row: CatchupWork; readonly rest: NewCatchup | undefined }[];
}

export function catchupService(scheduling: Scheduling): Service {
  const work = new CatchingUp(scheduling);
  return scheduling.processor('catchup', 'catching up', (signal) => work.turn(signal));
}

class CatchingUp {
  readonly #scheduling: Scheduling;
  /** Triggers that are held back or broken, and until when. */
  readonly #resting = new Map<string, number>();
  /** How many instants of a row's next piece have been fired; forgotten with the process, which costs a repetition. */
  readonly #begun = new Map<string, number>();
  #after: CatchupRow | undefined;
  #width = widest;

  constructor(scheduling: Scheduling) {
    this.#scheduling = scheduling;
  }

  async turn(signal: AbortSignal): Promise<Wait | undefined> {
    const { db, time } = this.#scheduling;
    const nowMs = time.now();
    for (const [id, untilMs] of this.#resting) if (untilMs <= nowMs) this.#resting.delete(id);
    const limit = this.#width;
    const look = { after: this.#after, resting: [...this.#resting.keys()], limit, most: mostWaiting };
    const rows = await nextCatchups(db, look);
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

  /** In order, as many as make up a turn; `last` is the last that was looked at. */
  #plan(rows: readonly CatchupWork[], nowMs: number): Turn & { last: CatchupWork | undefined } {
    const turn: Turn = { slices: [], edited: [] };
    let runs = 0;
    let last: CatchupWork | undefined;
    for (const row of rows) {
      if (runs >= turnRuns) break;
      last = row;
      if (row.waiting >= mostWaiting) this.#rest(row, heldMs);
      else runs += this.#add(turn, row, turnRuns - runs, nowMs);
    }
    return { ...turn, last };
  }

  /** Answers how many runs it makes. */
  #add(turn: Turn, row: CatchupWork, mostRuns: number, nowMs: number): number {
    try {
      const schedule = compileSchedule(specOf(row));
      if (row.plan !== planOf(row)) {
        turn.edited.push({ row, rest: recut(row, row, schedule, nowMs) });
        return 0;
      }
      const edges = Math.max(1, row.edges);
      const piece = pieceInstantsOf(row, schedule);
      const begun = this.#begun.get(keyOf(row)) ?? 0;
      const instants = piece.slice(begun, begun + Math.max(1, Math.floor(mostRuns / edges)));
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
      this.#width = Math.min(widest, 2 * slices.length);
    } catch (error) {
      // another error concerns all of them: catching up does not work
      if (!isRowRejection(error)) throw error;
      const [only, ...others] = slices;
      if (only !== undefined && others.length === 0) this.#break(only.row, error);
      this.#width = 1;
    }
  }

  /** In one commit: runs that are made together are handed out in one order. */
  async #fireAlike(order: CatchupRow['policy'], slices: readonly Slice[]): Promise<void> {
    const { db, time, ctx, ready, killed: tell } = this.#scheduling;
    const firings = slices.flatMap(({ row, instants }) =>
      instants.map((instantMs) => ({ triggerId: row.id, instantMs })),
    );
    const at = new Date(time.now());
    const { fired, created, killed, lanes } = await fireTriggers(db, firings, { priority: 'backfill', order, at });
    ready(created, lanes);
    await tell(killed);
    instantsCaughtUp.emit(ctx.telemetry, { tenant: ctx.tenant.id, triggers: fired, runs: created });
  }

  #break(row: CatchupWork, error: unknown): void {
    const about = { err: error, trigger: row.id };
    this.#scheduling.ctx.log.error(about, 'the missed instants of a trigger cannot be caught up; trying again later');
    this.#rest(row, brokenMs);
  }

  /** The more there are that rest, the less often each is looked at. */
  #rest(row: CatchupWork, ms: number): void {
    this.#resting.set(row.trigger_id, this.#scheduling.time.now() + ms + 5 * this.#resting.size);
  }
}

function keyOf(row: CatchupWork): string {
  return `${row.trigger_id} ${row.from_at.getTime()} ${row.to_at.getTime()} ${row.next_piece} ${row.pieces} ${row.plan}`;
}
