/**
 * The trigger processor: holds the triggers in a priority queue and fires them when they are due. One turn of its loop reads
 * changed jobs, then fires due triggers, or sleeps until the next trigger is due or a change arrives.
 *
 * Triggers that are due together fire in one transaction (I1), each with all its due instants: otherwise a trigger that is
 * behind after a slow commit would never catch up.
 */
import type { SchedulerStatus } from '../contract/context.ts';
import { compileSchedule, nextInstant, type Schedule } from '../calendar/schedule.ts';
import { isRowRejection } from '../errors.ts';
import { checkpoint } from './checkpoints.ts';
import { DueQueue } from '../kernel/queues/due-queue.ts';
import { isolateRejected } from '../kernel/isolate-rejected.ts';
import { pause, type Service } from '../kernel/service.ts';
import { splitInto } from '../kernel/split-into.ts';
import { arrive, type Arrival, graceMs } from './arrival.ts';
import { cut } from './catchup/catchup.ts';
import { insertCatchups } from './catchup/queries.ts';
import { activeTriggers, type Firing, fireTriggers, skipInstants, type TriggerRow } from './queries.ts';
import type { Part, Progress } from './part-faults.ts';
import type { Scheduling, Wait } from './scheduling.ts';
import { type Due, specOf } from './trigger-schedule.ts';
import { triggersFired } from './telemetry.ts';

interface Trigger {
  readonly row: TriggerRow;
  readonly schedule: Schedule;
}

/** Triggers taken from the queue in one turn, before changes are read again. */
const maxPerTurn = 10_000;
/**
 * Firings per commit. With more, two commits run at a time, because a server has more than one core. Smaller commits start the first
 * runs of a burst sooner and the last ones later, because the reports of the first compete with the other commits: 1,000 new tasks had
 * all started after 120 to 135 ms in four commits, and after 85 to 154, 105 in the median, in one (four tries each, 2026-11-18).
 */
const maxPerCommit = 2_500;
const maxCommitsAtOnce = 2;
/** Changed jobs that are read in one turn, before due triggers fire. */
const maxReloadedJobs = 500;
/** Triggers that are settled in one commit when they enter the queue. */
const maxSettledPerCommit = 5_000;
const maxSleepMs = 30_000;
/** A fault of firing is cleared if no trigger is due within this time: its job was deleted, or its instant missed. */
const clearAfterMs = 60_000;
/** Firing is a part of its own, apart from reading triggers. Refusals of rows are judged once the others have fired. */
const firing = { doing: 'firing triggers', isVital: true, ignores: isRowRejection };
/** `maxRejected`: with more rejected triggers or jobs in a batch, firing itself is at fault. */
const isolation = { isRejection: isRowRejection, maxRejected: 16 };
/** The fault if the database refuses all remaining triggers. */
const firingAny = { doing: firing.doing, isVital: true };
/** The fault of single triggers and jobs that the database refuses while others fire. */
const firingRefused = { doing: 'firing triggers that the database refuses', isVital: false };
/** The wait before a refused trigger or job is retried, so that it costs the others no time. */
const refusedPauseMs = 5_000;
/** Next triggers that the status lists. */
const maxListedNext = 20;

export class TriggerProcessor {
  readonly #scheduling: Scheduling;
  readonly #queue = new DueQueue<Due<Trigger>>();
  readonly #byJob = new Map<string, Set<string>>();
  /** Jobs to read again. They stay here until that has succeeded. */
  readonly #stale = new Set<string>();
  /** Jobs whose settlement the database refused. They become stale again at `#refusedUntilMs`. */
  readonly #refusedJobs = new Set<string>();
  #refusedUntilMs = 0;
  /** Triggers whose last firing the database refused. */
  readonly #refusedTriggers = new Set<string>();
  /** Triggers taken from the queue and not fired yet. */
  readonly #firing = new Set<Due<Trigger>>();
  /** The firing statement has been planned, by a warm-up or a firing. */
  #isWarm = false;
  readonly service: Service;

  constructor(scheduling: Scheduling) {
    this.#scheduling = scheduling;
    const run = scheduling.processor('triggers', 'reading triggers', (signal, progress) =>
      this.#turn(signal, progress),
    );
    this.service = {
      name: 'triggers',
      start: async () => {
        this.#load(await activeTriggers(scheduling.db));
        await run.start();
      },
      stop: run.stop,
    };
  }

  get status(): Omit<SchedulerStatus, 'ready'> {
    const next = [...[...this.#firing].slice(0, maxListedNext), ...this.#queue.first(maxListedNext)].map(
      (due) => due.id,
    );
    return {
      queuedTriggers: this.#firing.size + this.#queue.size,
      nextTriggerId: this.#queue.peek()?.id ?? null,
      nextTriggers: [...new Set(next)].slice(0, maxListedNext),
    };
  }

  /** One turn of the loop: reads changes, then returns how to fire due triggers, or how to wait. */
  async #turn(signal: AbortSignal, progress: Progress): Promise<Wait | undefined> {
    const { changedJobs, time, faults } = this.#scheduling;
    if (changedJobs.size > 0) for (const id of await changedJobs.receive(maxPerTurn, signal)) this.#stale.add(id);
    if (this.#refusedJobs.size > 0 && time.now() >= this.#refusedUntilMs) await this.#tryRefusedJobs(progress);
    if (this.#stale.size > 0) await this.#reload(progress);
    const head = this.#queue.peek();
    if (head !== undefined && head.dueMs <= time.now()) return () => this.#fireDue();
    // triggers that could not be fired are no longer due, and no firing soon would show that firing works again
    const isFree = head === undefined || head.dueMs - time.now() > clearAfterMs;
    if (isFree && this.#refusedTriggers.size === 0) faults.clear(firing);
    if (this.#stale.size > 0) return undefined;
    if (this.#refusedJobs.size > 0)
      return () => this.#sleep(Math.min(head?.dueMs ?? Infinity, this.#refusedUntilMs), signal);
    return this.#isWarm || head === undefined
      ? () => this.#sleep(head?.dueMs, signal)
      : this.#warmUp(head.dueMs, signal);
  }

  /**
   * Plans the firing statement before the first trigger is due. PostgreSQL plans a statement at its first use on a connection,
   * which takes three times as long as a firing. A gateway prepares its claim, too: it opens the tenant and finds nothing. Tenants
   * do this at different times, so that hundreds of them do not plan in the same second.
   */
  async #warmUp(dueMs: number, signal: AbortSignal): Promise<Wait | undefined> {
    const { db, time, ctx } = this.#scheduling;
    const warmMs = dueMs - warmUpLeadMs(ctx.tenant.id);
    if (time.now() < warmMs) return () => this.#sleep(warmMs, signal);
    this.#isWarm = true;
    await fireTriggers(db, [], { priority: 'normal', at: new Date(time.now()), dues: [] });
    ctx.hints.send('ready');
    return undefined;
  }

  /** Sleeps until then, or until a change arrives, at most 30 s. */
  async #sleep(untilMs: number | undefined, signal: AbortSignal): Promise<void> {
    // aborted while this turn read or fired: a listener added now would not be called
    if (signal.aborted) return;
    // not AbortSignal.any: on Node 20, the long-lived signal would keep each combined signal alive
    const nap = new AbortController();
    const wake = (): void => nap.abort();
    signal.addEventListener('abort', wake, { once: true });
    const { time, changedJobs } = this.#scheduling;
    const ends = [changedJobs.arrival(nap.signal), pause(maxSleepMs, nap.signal)];
    await Promise.race(untilMs === undefined ? ends : [...ends, time.until(untilMs, nap.signal)]);
    nap.abort();
    signal.removeEventListener('abort', wake);
  }

  async #fireDue(): Promise<void> {
    const nowMs = this.#scheduling.time.now();
    const due = this.#queue.popDue(nowMs, maxPerTurn);
    // computed from the instant, because the queue has a later time for a refused trigger
    const dueMs = ({ instantMs, trigger }: Due<Trigger>): number => instantMs + trigger.row.offset_ms;
    const [overslept, onTime] = partition(due, (entry) => dueMs(entry) < nowMs - graceMs);
    // instants of a suspended machine or a long outage are missed: `arrive` applies the trigger's policy
    for (const entry of overslept) this.#stale.add(entry.trigger.row.job_id);
    const left = splitInto(maxPerCommit, onTime);
    const fire = async (): Promise<void> => {
      for (let some = left.shift(); some !== undefined; some = left.shift()) await this.#fireIsolated(some);
    };
    for (const entry of onTime) this.#firing.add(entry);
    const done = await Promise.allSettled(Array.from({ length: Math.min(maxCommitsAtOnce, left.length) }, fire));
    // not fired because a commit failed
    for (const entry of left.flat()) this.#putBack(entry);
    for (const outcome of done) if (outcome.status === 'rejected') throw outcome.reason;
  }

  /** Fires triggers. Those that the database refuses are isolated, so that the others fire, and retried after a pause. */
  async #fireIsolated(some: readonly Due<Trigger>[]): Promise<void> {
    try {
      this.#setAside(await isolateRejected(some, (part) => this.#fire(part), isolation));
    } catch (error) {
      if (isRowRejection(error)) this.#report(firingAny, error);
      throw error;
    } finally {
      // not tried, because too many were refused or the connection was lost
      for (const entry of some) if (this.#firing.has(entry)) this.#putBack(entry);
    }
  }

  /** Queues refused triggers for later. If no other trigger is left, firing itself counts as failed. */
  #setAside(refused: ReadonlyMap<Due<Trigger>, unknown>): void {
    const dueMs = this.#scheduling.time.now() + refusedPauseMs;
    for (const entry of refused.keys()) {
      this.#refusedTriggers.add(entry.id);
      this.#queue.push({ ...entry, dueMs });
    }
    const hasOthers = this.#queue.size + this.#firing.size > this.#refusedTriggers.size;
    for (const error of refused.values()) this.#report(hasOthers ? firingRefused : firingAny, error);
  }

  #report(part: Part, error: unknown): void {
    const { faults, fault } = this.#scheduling;
    faults.fail(part, error);
    fault(part.doing)(error);
  }

  /** Clears the fault once the database no longer refuses any trigger or job. */
  #clearRefusals(): void {
    if (this.#refusedTriggers.size === 0 && this.#refusedJobs.size === 0) this.#scheduling.faults.clear(firingRefused);
  }

  async #fire(onTime: readonly Due<Trigger>[]): Promise<void> {
    const { db, time, ctx, faults } = this.#scheduling;
    this.#isWarm = true;
    // not the start of the turn: these may have waited for other commits
    const nowMs = time.now();
    const most = Math.max(1, Math.floor(maxPerCommit / onTime.length));
    const due = onTime.flatMap((entry) => dueInstants(entry, nowMs, most));
    try {
      const firings = due.map(({ trigger, instantMs }) => ({ triggerId: trigger.row.id, instantMs }));
      checkpoint('triggers.fire');
      const dues = due.map(({ dueMs }) => new Date(dueMs));
      const how = { priority: 'normal', at: new Date(nowMs), dues } as const;
      const { fired, created } = await faults.attempt(firing, async () => {
        const outcome = await fireTriggers(db, firings, how);
        checkpoint('triggers.fired');
        this.#scheduling.ready(outcome.created, outcome.lanes);
        await this.#scheduling.killed(outcome.killed);
        return outcome;
      });
      const firedAt = time.now();
      const latenessMs = due.map(({ dueMs }) => firedAt - dueMs);
      triggersFired.emit(ctx.telemetry, { tenant: ctx.tenant.id, triggers: fired, runs: created, latenessMs });
    } catch (error) {
      for (const entry of onTime) this.#putBack(entry);
      throw error;
    }
    for (const entry of onTime) this.#firing.delete(entry);
    const healed = onTime.filter(({ id }) => this.#refusedTriggers.delete(id));
    if (healed.length > 0) this.#clearRefusals();
    const last = new Map(due.map((instant) => [instant.trigger.row.id, instant]));
    for (const { trigger, instantMs } of last.values()) this.#queueAfter(trigger, instantMs);
  }

  #putBack(entry: Due<Trigger>): void {
    this.#firing.delete(entry);
    this.#queue.push(entry);
  }

  #queueAfter(trigger: Trigger, instantMs: number): void {
    this.#queueAt(trigger, nextInstant(trigger.schedule, instantMs));
  }

  #queueAt(trigger: Trigger, instantMs: number | undefined): void {
    if (instantMs === undefined) return;
    this.#queue.push({ id: trigger.row.id, dueMs: instantMs + trigger.row.offset_ms, instantMs, trigger });
  }

  /** Reads up to `maxReloadedJobs` changed jobs, so that due triggers need not wait for a large change. */
  async #reload(progress: Progress): Promise<void> {
    const reload = async (ids: readonly string[]): Promise<void> => {
      await this.#take(ids, await activeTriggers(this.#scheduling.db, ids), progress);
      for (const id of ids) this.#stale.delete(id);
    };
    const refused = await isolateRejected([...this.#stale].slice(0, maxReloadedJobs), reload, isolation);
    if (refused.size > 0) this.#refusedUntilMs = this.#scheduling.time.now() + refusedPauseMs;
    for (const [id, error] of refused) {
      this.#stale.delete(id);
      this.#refusedJobs.add(id);
      this.#report(firingRefused, error);
    }
  }

  async #tryRefusedJobs(progress: Progress): Promise<void> {
    for (const id of this.#refusedJobs) this.#stale.add(id);
    this.#refusedJobs.clear();
    await this.#reload(progress);
    this.#clearRefusals();
  }

  /** At the start: queues triggers that have missed nothing. The jobs of the others are read again between live firings. */
  #load(rows: readonly TriggerRow[]): void {
    const nowMs = this.#scheduling.time.now();
    for (const row of rows) {
      // counts as active before this start
      this.#remember(row);
      const trigger = this.#compile(row);
      if (trigger === undefined) continue;
      const { marks, next } = arrive(row, trigger.schedule, nowMs, true);
      if (marks.length === 0) this.#queueAt(trigger, next);
      else this.#stale.add(row.job_id);
    }
  }

  /** Replaces the known triggers of the jobs by these, which are all that the jobs have now. */
  async #take(jobIds: readonly string[], rows: readonly TriggerRow[], progress: Progress): Promise<void> {
    const nowMs = this.#scheduling.time.now();
    const arrived = rows.flatMap((row) => {
      const trigger = this.#compile(row);
      return trigger === undefined ? [] : [{ trigger, ...arrive(row, trigger.schedule, nowMs, this.#isKnown(row)) }];
    });
    for (let i = 0; i < arrived.length; i += maxSettledPerCommit) {
      progress();
      await this.#settle(arrived.slice(i, i + maxSettledPerCommit), new Date(nowMs));
    }
    for (const jobId of jobIds) this.#forget(jobId);
    for (const { trigger, next } of arrived) {
      this.#remember(trigger.row);
      this.#queueAt(trigger, next);
    }
  }

  /** Returns undefined for a trigger with an invalid schedule, which must not stop the others. */
  #compile(row: TriggerRow): Trigger | undefined {
    try {
      return { row, schedule: compileSchedule(specOf(row)) };
    } catch (error) {
      this.#scheduling.ctx.log.error({ err: error, trigger: row.id }, 'invalid schedule, trigger ignored');
      return undefined;
    }
  }

  #isKnown(row: TriggerRow): boolean {
    return this.#byJob.get(row.job_id)?.has(row.id) ?? false;
  }

  #remember(row: TriggerRow): void {
    const ids = this.#byJob.get(row.job_id) ?? new Set();
    this.#byJob.set(row.job_id, ids.add(row.id));
  }

  #forget(jobId: string): void {
    for (const triggerId of this.#byJob.get(jobId) ?? []) {
      this.#queue.remove(triggerId);
      this.#refusedTriggers.delete(triggerId);
    }
    this.#byJob.delete(jobId);
  }

  /** Records catch-ups and moves the marks past them in one commit, so that no missed instant is lost. */
  async #settle(arrived: readonly Arrived[], at: Date): Promise<void> {
    const { db, work } = this.#scheduling;
    const fire = arrived.flatMap(({ trigger, fire: instants }) => firingsOf(trigger, instants));
    const marks = arrived.flatMap(({ trigger, marks: instants }) => firingsOf(trigger, instants));
    const catchups = arrived.flatMap(({ trigger, catchups: ranges }) =>
      ranges.map((range) => cut(trigger.row, trigger.schedule, range)),
    );
    if (marks.length === 0) return;
    checkpoint('triggers.settle');
    if (fire.length > 0) {
      const { created, lanes } = await fireTriggers(db, fire, { priority: 'normal', at });
      this.#scheduling.ready(created, lanes);
      checkpoint('triggers.settle.fired');
    }
    await db.transaction(async (tx) => {
      if (catchups.length > 0) {
        await insertCatchups(tx, catchups);
        checkpoint('triggers.settle.noted');
      }
      await skipInstants(tx, marks);
    });
    checkpoint('triggers.settled');
    if (catchups.length > 0) work.catchup.ring();
  }
}

/** How long before the first due time the warm-up happens: 1 to 10 s, by the tenant's id. */
export function warmUpLeadMs(tenantId: string): number {
  return 1_000 + (Number.parseInt(tenantId.slice(-4), 16) % 9_000);
}

interface DueInstant {
  readonly trigger: Trigger;
  readonly instantMs: number;
  readonly dueMs: number;
}

/** The trigger's instants that are due by then, in order, at most `most`. The first is the entry's own, due or not. */
function dueInstants({ trigger, instantMs: firstMs }: Due<Trigger>, nowMs: number, most: number): DueInstant[] {
  const { schedule, row } = trigger;
  const found: DueInstant[] = [];
  for (let at: number | undefined = firstMs; at !== undefined && found.length < most; at = nextInstant(schedule, at)) {
    const dueMs = at + row.offset_ms;
    if (dueMs > nowMs && found.length > 0) break;
    found.push({ trigger, instantMs: at, dueMs });
  }
  return found;
}

type Arrived = Arrival & { readonly trigger: Trigger };

function firingsOf(trigger: Trigger, instants: readonly number[]): Firing[] {
  return instants.map((instantMs) => ({ triggerId: trigger.row.id, instantMs }));
}

function partition<T>(items: readonly Due<T>[], test: (item: Due<T>) => boolean): [Due<T>[], Due<T>[]] {
  const yes: Due<T>[] = [];
  const no: Due<T>[] = [];
  for (const item of items) (test(item) ? yes : no).push(item);
  return [yes, no];
}
