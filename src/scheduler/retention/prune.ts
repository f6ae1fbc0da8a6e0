/**
 * Retention deletes runs beyond the age or number that their job keeps, with their logs, tokens and firings, executions of flows, and
 * other data that is no longer needed.
 *
 * 1. It works in small batches, each in its own commit. The pause after a batch grows with the time that the batch took, so
 *    that a loaded server is spared.
 * 2. Two processes share the work. A process that dies leaves nothing half deleted.
 *
 * Limits in age and in number both become a time: runs that ended before it are deleted.
 */
import type { EngineContext } from '../../contract/context.ts';
import { dropPieces } from '../../bus/retention/drop-pieces.ts';
import { pruneBus } from '../../bus/retention/prune.ts';
import { pruneEvents } from '../../events/prune.ts';
import { ExecutionPruner } from '../../flows/retention/prune.ts';
import { dayMs } from '../../kernel/text/duration.ts';
import { checkpoint } from '../checkpoints.ts';
import { LogThrottle } from '../../kernel/log-throttle.ts';
import { pause, type Service } from '../../kernel/service.ts';
import { type Db, onPool } from '../../kernel/sql.ts';
import { JobCounts } from './job-counts.ts';
import * as queries from './queries.ts';
import type { Scheduling } from '../scheduling.ts';

const firstWaitMs = 5_000;
const passIntervalMs = 60_000;
/** The wait after a pass that ran out of time. */
const moreWaitMs = 1_000;

/** Maximum rows that one statement may touch. */
const batch = {
  runs: 1_000,
  chunks: 500,
  tasks: 1_000,
  jobs: 1_000,
  countedJobs: 50,
  countedRuns: 200_000,
  walk: 2_000,
};
/** The longest time of one step before the next step begins. */
const maxStepMs = 15_000;
/** The age of activity that is kept, which is as far back as the API can be asked for. */
const keepActivityMs = 30 * dayMs;
/** A firing transaction is short, so the mark can usually be raised a moment later. */
const maxRaiseAttempts = 5;

interface Pass {
  /** Deleted rows. */
  readonly rows: number;
  /** Whether time ran out and more is left. */
  readonly more: boolean;
}

/** Deletes everything that retention no longer keeps. Returns the number of rows. */
export async function pruneTenant(ctx: EngineContext): Promise<number> {
  const pruner = new Pruner(ctx, { whole: true });
  let rows = 0;
  for (let more = true; more; ) {
    const pass = await pruner.pass(new AbortController().signal);
    rows += pass.rows;
    more = pass.more;
  }
  return rows;
}

export function housekeeping({ ctx, processor }: Scheduling): Service {
  const pruner = new Pruner(ctx, { whole: false });
  // wait at first: a scheduler that starts has more urgent work
  let isNew = true;
  return processor('housekeeping', 'forgetting old runs', async (signal) => {
    if (isNew) {
      isNew = false;
      return () => pause(firstWaitMs * (1 + Math.random()), signal);
    }
    checkpoint('housekeeping.pass');
    const pass = await ctx.housekeeping('retention', () => pruner.pass(signal));
    checkpoint('housekeeping.passed');
    // random waits, so that tenants that were started together do not stay in step
    const waitMs = pass?.more ? moreWaitMs : passIntervalMs * (0.8 + 0.4 * Math.random());
    return () => pause(waitMs, signal);
  });
}

/** Keeps its position in each table between passes. */
class Pruner {
  readonly #ctx: EngineContext;
  readonly #db: Db;
  /** True: each pass covers every table from end to end, without pauses. False: a stretch of each table. */
  readonly #whole: boolean;
  readonly #counts = new JobCounts();
  #task = queries.first.id;
  #job = queries.first.id;
  readonly #walks = { tokens: queries.first, firings: queries.first, instants: queries.first };
  readonly #executions: ExecutionPruner;
  readonly #throttle = new LogThrottle({ everyMs: dayMs });

  constructor(ctx: EngineContext, { whole }: { whole: boolean }) {
    this.#ctx = ctx;
    this.#db = onPool(ctx.pool);
    this.#whole = whole;
    this.#executions = new ExecutionPruner({ whole });
  }

  async pass(signal: AbortSignal): Promise<Pass> {
    const steps = [
      (work: Work) => this.#byAge(work),
      (work: Work) => this.#nodeRuns(work),
      (work: Work) => this.#byNumber(work),
      (work: Work) => this.#walk('tokens', queries.sweepTokens, work),
      (work: Work) => this.#walk('firings', (db, walk) => this.#sweepFirings(db, walk), work),
      (work: Work) => this.#walk('instants', queries.sweepInstants, work),
      (work: Work) => this.#events(work),
      async () => ({ rows: await queries.forgetLeases(this.#db, this.#ago(dayMs)), more: false }),
      () => this.#activity(),
      (work: Work) => this.#bus(work),
      (work: Work) => this.#ofFlows(work),
    ];
    let rows = 0;
    let more = false;
    for (const step of steps) {
      if (signal.aborted) break;
      const done = await step({ signal, untilMs: performance.now() + maxStepMs });
      rows += done.rows;
      more ||= done.more;
    }
    if (rows > 0) this.#ctx.log.debug({ rows }, 'old rows deleted');
    return { rows, more };
  }

  #ago(ms: number): Date {
    return new Date(this.#ctx.time.now() - ms);
  }

  /** Runs one statement, then pauses for as long as it took. */
  async #step<T>({ signal }: Work, statement: () => Promise<T>): Promise<T> {
    const startedMs = performance.now();
    const result = await statement();
    if (!this.#whole) await pause(Math.min(1_000, performance.now() - startedMs), signal);
    return result;
  }

  async #byAge(work: Work): Promise<Pass> {
    const { ageMs } = this.#ctx.settings.retention;
    let rows = 0;
    for (let more = true; more; ) {
      const page = { after: this.#task, limit: batch.tasks, ageMs, at: this.#ago(0) };
      const { seen, last, cuts } = await this.#step(work, () => queries.findAgedTasks(this.#db, page));
      const done = await this.#cut(cuts, work);
      rows += done.rows;
      if (done.more) return { rows, more: true };
      const end = seen < batch.tasks;
      this.#task = end ? queries.first.id : last;
      more = !end && (this.#whole || done.rows > 0) && !isOver(work);
    }
    return { rows, more: false };
  }

  /** Runs of nodes have no job, so the installation's age applies. */
  async #nodeRuns(work: Work): Promise<Pass> {
    const { ageMs } = this.#ctx.settings.retention;
    if (ageMs === null) return { rows: 0, more: false };
    let rows = 0;
    while (!isOver(work)) {
      const old = await this.#step(work, () => queries.findOldNodeRuns(this.#db, this.#ago(ageMs), batch.runs));
      if (old.length === 0) return { rows, more: false };
      const gone = await this.#forget(old, work);
      rows += gone.rows;
      if (gone.runs === 0 || old.length < batch.runs) return { rows, more: false };
    }
    return { rows, more: true };
  }

  async #byNumber(work: Work): Promise<Pass> {
    await this.#knowJobs(work);
    const nowMs = performance.now();
    let rows = 0;
    let more = false;
    for (const group of this.#counts.due(nowMs, batch.countedJobs, batch.countedRuns)) {
      if (isOver(work)) return { rows, more: true };
      const counts = await this.#step(work, () => queries.countRuns(this.#db, group));
      const done = await this.#cut(await this.#cutsOf(counts), work);
      rows += done.rows;
      if (done.more) return { rows, more: true };
      for (const { id, runs, surplus } of counts) more = this.#counts.note(id, { runs, surplus }, nowMs) || more;
    }
    return { rows, more };
  }

  async #knowJobs(work: Work): Promise<void> {
    const { runs } = this.#ctx.settings.retention;
    for (let more = true; more; ) {
      const page = { after: this.#job, limit: batch.jobs, runs };
      const jobs = await this.#step(work, () => queries.readJobKeeps(this.#db, page));
      for (const { id, keep } of jobs) this.#counts.know(id, keep);
      const end = jobs.length < batch.jobs;
      this.#job = end ? queries.first.id : (jobs.at(-1)?.id ?? queries.first.id);
      more = this.#whole && !end;
    }
  }

  async #cutsOf(counts: readonly queries.JobCount[]): Promise<queries.Cut[]> {
    const before = new Map(counts.flatMap((count) => (count.before === null ? [] : [[count.id, count.before]])));
    if (before.size === 0) return [];
    const tasks = await queries.findTasks(this.#db, [...before.keys()]);
    return tasks.flatMap(({ id, job_id }) => {
      const at = before.get(job_id);
      return at === undefined ? [] : [{ task: id, before: at }];
    });
  }

  /** Deletes the runs of these tasks that ended before the given times. */
  async #cut(cuts: readonly queries.Cut[], work: Work): Promise<Pass> {
    let left = cuts.map((cut) => ({ ...cut, from: queries.first.at }));
    if (left.length > 0)
      await this.#raise(
        () =>
          queries.raiseLowWaterOf(
            this.#db,
            left.map((cut) => cut.task),
          ),
        work,
      );
    let rows = 0;
    while (left.length > 0) {
      if (isOver(work)) return { rows, more: true };
      const old = await this.#step(work, () => queries.findOldRuns(this.#db, left, batch.runs));
      const gone = await this.#forget(
        old.map((run) => run.id),
        work,
      );
      rows += gone.rows;
      // a run that another process is deleting, or whose retry is pending, is left to a later pass
      if (gone.runs === 0 || old.length < batch.runs) break;
      left = dropDone(left, old);
    }
    return { rows, more: false };
  }

  async #forget(ids: readonly string[], work: Work): Promise<{ rows: number; runs: number }> {
    let rows = 0;
    for (;;) {
      const gone = await this.#step(work, () => queries.forgetRuns(this.#db, ids, batch.chunks));
      rows += gone.runs + gone.tokens + gone.firings + gone.instants + gone.chunks;
      if (!gone.more || work.signal.aborted) return { rows, runs: gone.runs };
    }
  }

  /** If the marks cannot be raised, the firings stay for now, and the walk along `firing` finds them later. */
  async #raise(raise: () => Promise<boolean>, { signal }: Work): Promise<void> {
    for (let attempt = 1; attempt <= maxRaiseAttempts && !signal.aborted; attempt++) {
      if (await raise()) return;
      await pause(5 * attempt, signal);
    }
  }

  /** Walks a stretch of a table, and continues while more than half of the rows are deleted. */
  async #walk(
    name: 'tokens' | 'firings' | 'instants',
    sweep: (db: Db, walk: queries.Walk) => Promise<queries.Stretch | undefined>,
    work: Work,
  ): Promise<Pass> {
    const { ageMs } = this.#ctx.settings.retention;
    let rows = 0;
    for (let more = true; more; ) {
      const walk = { ...this.#walks[name], limit: batch.walk, ageMs, now: this.#ago(0) };
      const stretch = await this.#step(work, () => sweep(this.#db, walk));
      if (stretch === undefined) return { rows, more: false };
      rows += stretch.gone;
      const end = stretch.seen < batch.walk;
      this.#walks[name] = end ? queries.first : { id: stretch.id, at: stretch.at };
      more = !end && (this.#whole || stretch.gone > stretch.seen / 2) && !isOver(work);
    }
    return { rows, more: false };
  }

  /** Raises the marks of triggers that have old firings, and then sweeps their firings again. */
  async #sweepFirings(db: Db, walk: queries.Walk): Promise<queries.Stretch | undefined> {
    const met = await queries.sweepFirings(db, walk);
    if (met === undefined || met.triggers.length === 0) return met;
    if (!(await queries.raiseLowWater(db, met.triggers))) return met;
    const again = await queries.sweepFirings(db, walk);
    return again && { ...again, gone: again.gone + met.gone };
  }

  async #events(work: Work): Promise<Pass> {
    const { ageMs, events: most } = this.#ctx.settings.retention;
    let rows = 0;
    for (;;) {
      const retention = {
        before: ageMs === null ? undefined : this.#ago(ageMs),
        most: most ?? undefined,
        now: this.#ago(0),
      };
      const { events, more, heldBy } = await this.#step(work, () => pruneEvents(this.#db, retention));
      rows += events;
      if (heldBy !== undefined) this.#warnOfReader(heldBy);
      if (!more || events === 0 || isOver(work)) return { rows, more: false };
    }
  }

  /** Deletes old activity: usually one row per minute, more after a long pause. */
  async #activity(): Promise<Pass> {
    const rows = await queries.forgetActivity(this.#db, this.#ago(keepActivityMs), batch.walk);
    return { rows, more: rows === batch.walk };
  }

  async #bus(work: Work): Promise<Pass> {
    const { bus } = this.#ctx.settings;
    if (bus === undefined) return { rows: 0, more: false };
    const { maxBytes, retentionMs } = bus;
    if (maxBytes !== undefined) await this.#step(work, () => dropPieces(this.#ctx, this.#db, maxBytes));
    let rows = 0;
    while (!isOver(work)) {
      const pruned = await this.#step(work, () => pruneBus(this.#db, { retentionMs, nowMs: this.#ctx.time.now() }));
      rows += pruned.rows;
      if (!pruned.more) return { rows, more: false };
    }
    return { rows, more: true };
  }

  async #ofFlows(work: Work): Promise<Pass> {
    const { ageMs, runs } = this.#ctx.settings.retention;
    let rows = 0;
    while (!isOver(work)) {
      const keep = { ageMs, runs, nowMs: this.#ctx.time.now() };
      const pruned = await this.#step(work, () => this.#executions.step(this.#db, keep));
      rows += pruned.rows;
      if (!pruned.more) return { rows, more: false };
    }
    return { rows, more: true };
  }

  /** Logs at most once a day that a reader keeps old events alive. */
  #warnOfReader(reader: string): void {
    if (!this.#throttle.isDue('event retention', reader)) return;
    this.#ctx.log.warn({ reader }, 'old events kept because a reader is behind');
  }
}

interface Work {
  readonly signal: AbortSignal;
  readonly untilMs: number;
}

function isOver({ signal, untilMs }: Work): boolean {
  return signal.aborted || performance.now() > untilMs;
}

type Left = queries.Cut & { readonly from: Date };

/** The cuts that remain after these runs: the last run's task, from that run's end on, and all tasks after it. */
function dropDone(left: readonly Left[], done: readonly queries.OldRun[]): Left[] {
  const last = done.at(-1);
  const at = left.findIndex((cut) => cut.task === last?.task_id);
  if (last === undefined || at < 0) return [];
  return left.slice(at).map((cut) => (cut.task === last.task_id ? { ...cut, from: last.finished_at } : cut));
}
