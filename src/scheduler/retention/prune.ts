/**
 * Retention: forgets runs that are older or more than their job keeps, with their logs, tokens and firings, and what
 * else nobody needs any more. In small batches, each a commit of its own, with pauses that grow with the time a batch
 * takes: a loaded server is left alone. Two at once share the work, and one that dies leaves whole things behind.
 *
 * A job's limits in age and in number both come down to a time: runs that ended before it go.
 */
import type { EngineContext } from '../../contract/context.ts';
import { pruneEvents } from '../../events/prune.ts';
import { dayMs } from '../../kernel/text/duration.ts';
import { checkpoint } from '../checkpoints.ts';
import { LogThrottle } from '../../kernel/log-throttle.ts';
import { pause, type Service } from '../../kernel/service.ts';
import { type Db, onPool } from '../../kernel/sql.ts';
import { JobCounts } from './job-counts.ts';
import * as queries from './queries.ts';
import type { Scheduling } from '../scheduling.ts';

const firstMs = 5_000;
const everyMs = 60_000;
/** While there is more to do than a pass was given time for. */
const soonMs = 1_000;

/** What one statement may touch, and how long a step may take before it is the next one's turn. */
const batch = {
  runs: 1_000,
  chunks: 500,
  tasks: 1_000,
  jobs: 1_000,
  countedJobs: 50,
  countedRuns: 200_000,
  walk: 2_000,
};
const longestMs = 15_000;
/** How far back the picture of what happened goes: as far as can be asked for. */
const activityMs = 30 * dayMs;
/** Nobody fires for long: a moment later it may do. */
const raiseTries = 5;

interface Pass {
  /** Rows that are gone. */
  readonly rows: number;
  /** Time ran out: there is more to do. */
  readonly more: boolean;
}

/** Removes what retention no longer keeps, all of it. */
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
  // a scheduler that starts has better things to do
  let isNew = true;
  return processor('housekeeping', 'forgetting old runs', async (signal) => {
    if (isNew) {
      isNew = false;
      return () => pause(firstMs * (1 + Math.random()), signal);
    }
    checkpoint('housekeeping.pass');
    const pass = await ctx.housekeeping('retention', () => pruner.pass(signal));
    checkpoint('housekeeping.passed');
    // tenants that were started together do not come together for ever
    const waitMs = pass?.more ? soonMs : everyMs * (0.8 + 0.4 * Math.random());
    return () => pause(waitMs, signal);
  });
}

/** Remembers between passes how far it has walked along each table. */
class Pruner {
  readonly #ctx: EngineContext;
  readonly #db: Db;
  /** Every table from end to end in one pass, and no pauses; else a stretch of each. */
  readonly #whole: boolean;
  readonly #counts = new JobCounts();
  #task = queries.first.id;
  #job = queries.first.id;
  readonly #walks = { tokens: queries.first, firings: queries.first, instants: queries.first };
  readonly #throttle = new LogThrottle({ everyMs: dayMs });

  constructor(ctx: EngineContext, { whole }: { whole: boolean }) {
    this.#ctx = ctx;
    this.#db = onPool(ctx.pool);
    this.#whole = whole;
  }

  async pass(signal: AbortSignal): Promise<Pass> {
    const steps = [
      (work: Work) => this.#byAge(work),
      (work: Work) => this.#byNumber(work),
      (work: Work) => this.#walk('tokens', queries.sweepTokens, work),
      (work: Work) => this.#walk('firings', (db, walk) => this.#sweepFirings(db, walk), work),
      (work: Work) => this.#walk('instants', queries.sweepInstants, work),
      (work: Work) => this.#events(work),
      async () => ({ rows: await queries.forgetLeases(this.#db, this.#ago(dayMs)), more: false }),
      () => this.#activity(),
    ];
    let rows = 0;
    let more = false;
    for (const step of steps) {
      if (signal.aborted) break;
      const done = await step({ signal, untilMs: performance.now() + longestMs });
      rows += done.rows;
      more ||= done.more;
    }
    if (rows > 0) this.#ctx.log.debug({ rows }, 'what is no longer kept is gone');
    return { rows, more };
  }

  #ago(ms: number): Date {
    return new Date(this.#ctx.time.now() - ms);
  }

  /** One statement, and a pause as long as it took. */
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
      const { seen, last, cuts } = await this.#step(work, () => queries.agedTasks(this.#db, page));
      const done = await this.#cut(cuts, work);
      rows += done.rows;
      if (done.more) return { rows, more: true };
      const end = seen < batch.tasks;
      this.#task = end ? queries.first.id : last;
      more = !end && (this.#whole || done.rows > 0) && !isOver(work);
    }
    return { rows, more: false };
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
      const jobs = await this.#step(work, () => queries.jobKeeps(this.#db, page));
      for (const { id, keep } of jobs) this.#counts.know(id, keep);
      const end = jobs.length < batch.jobs;
      this.#job = end ? queries.first.id : (jobs.at(-1)?.id ?? queries.first.id);
      more = this.#whole && !end;
    }
  }

  async #cutsOf(counts: readonly queries.JobCount[]): Promise<queries.Cut[]> {
    const before = new Map(counts.flatMap((count) => (count.before === null ? [] : [[count.id, count.before]])));
    if (before.size === 0) return [];
    const tasks = await queries.tasksOf(this.#db, [...before.keys()]);
    return tasks.flatMap(({ id, job_id }) => {
      const at = before.get(job_id);
      return at === undefined ? [] : [{ task: id, before: at }];
    });
  }

  /** Forgets the runs of these tasks that ended before their times. */
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
      const old = await this.#step(work, () => queries.oldRuns(this.#db, left, batch.runs));
      const gone = await this.#forget(old, work);
      rows += gone.rows;
      // one that another prunes, or whose retry waits, is for a later pass
      if (gone.runs === 0 || old.length < batch.runs) break;
      left = beyond(left, old);
    }
    return { rows, more: false };
  }

  async #forget(old: readonly queries.OldRun[], work: Work): Promise<{ rows: number; runs: number }> {
    const ids = old.map((run) => run.id);
    let rows = 0;
    for (;;) {
      const gone = await this.#step(work, () => queries.forgetRuns(this.#db, ids, batch.chunks));
      rows += gone.runs + gone.tokens + gone.firings + gone.instants + gone.chunks;
      if (!gone.more || work.signal.aborted) return { rows, runs: gone.runs };
    }
  }

  /** Where it is not granted the firings stay for now, and the walk along them finds them. */
  async #raise(raise: () => Promise<boolean>, { signal }: Work): Promise<void> {
    for (let tries = 1; tries <= raiseTries && !signal.aborted; tries++) {
      if (await raise()) return;
      await pause(5 * tries, signal);
    }
  }

  /** A stretch of a table, and further while half of what it meets goes. */
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

  /** Old firings of triggers whose mark was not raised yet are looked at once more. */
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
      if (heldBy !== undefined) this.#tellReader(heldBy);
      if (!more || events === 0 || isOver(work)) return { rows, more: false };
    }
  }

  /** A minute a minute goes; after a long pause there is more. */
  async #activity(): Promise<Pass> {
    const rows = await queries.forgetActivity(this.#db, this.#ago(activityMs), batch.walk);
    return { rows, more: rows === batch.walk };
  }

  #tellReader(reader: string): void {
    if (!this.#throttle.isDue('event retention', reader)) return;
    this.#ctx.log.warn({ reader }, 'events that are old are kept because a reader has not come that far');
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

/** What is left after these runs: of the task that was broken off in, what ended no earlier, and those that follow it. */
function beyond(left: readonly Left[], done: readonly queries.OldRun[]): Left[] {
  const last = done.at(-1);
  const at = left.findIndex((cut) => cut.task === last?.task_id);
  if (last === undefined || at < 0) return [];
  return left.slice(at).map((cut) => (cut.task === last.task_id ? { ...cut, from: last.finished_at } : cut));
}
