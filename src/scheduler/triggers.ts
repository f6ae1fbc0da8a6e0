/**
 * The trigger processor: holds the triggers in a priority queue and fires them when they are due. Its loop is the
 * seed's: take in the changes that are pending; with an empty queue wait for one; else fire what is due, or sleep until
 * the next is due or a change comes. All triggers due together fire in one transaction (I1).
 */
import { compileSchedule, nextInstant, type Schedule } from '../jobs/schedule.ts';
import { type Service, steady } from '../kernel/service.ts';
import { arrive, type Arrival, graceMs } from './arrival.ts';
import { piecesOf } from './catchup.ts';
import { activeTriggers, type Firing, fireTriggers, insertCatchup, skipInstants, type TriggerRow } from './queries.ts';
import type { Scheduling } from './scheduling.ts';
import { specOf } from './spec.ts';
import { type Due, TriggerQueue } from './trigger-queue.ts';

interface Trigger {
  readonly row: TriggerRow;
  readonly schedule: Schedule;
}

const batch = 10_000;

export class TriggerProcessor {
  readonly #scheduling: Scheduling;
  readonly #queue = new TriggerQueue<Trigger>();
  readonly #byJob = new Map<string, Set<string>>();
  readonly service: Service;

  constructor(scheduling: Scheduling) {
    this.#scheduling = scheduling;
    const run = steady('triggers', (signal) => this.#turn(signal), scheduling.fault('firing triggers'));
    this.service = {
      name: 'triggers',
      start: async () => {
        await this.#take(await activeTriggers(scheduling.db));
        await run.start();
      },
      stop: run.stop,
    };
  }

  get status(): { queuedTriggers: number; nextTriggerId: string | null } {
    return { queuedTriggers: this.#queue.size, nextTriggerId: this.#queue.peek()?.id ?? null };
  }

  /** One turn of the loop. */
  async #turn(signal: AbortSignal): Promise<void> {
    const { changedJobs, time } = this.#scheduling;
    if (changedJobs.size > 0) await this.#reload(await changedJobs.receive(batch, signal));
    const head = this.#queue.peek();
    if (head === undefined) await changedJobs.arrival(signal);
    else if (head.dueMs <= time.now()) await this.#fireDue();
    else await this.#sleep(head.dueMs, signal);
  }

  async #sleep(untilMs: number, signal: AbortSignal): Promise<void> {
    const nap = new AbortController();
    const both = AbortSignal.any([signal, nap.signal]);
    await Promise.race([this.#scheduling.time.until(untilMs, both), this.#scheduling.changedJobs.arrival(both)]);
    nap.abort();
  }

  async #fireDue(): Promise<void> {
    const { db, time, ctx } = this.#scheduling;
    const nowMs = time.now();
    const due = this.#queue.popDue(nowMs, batch);
    const [overslept, onTime] = partition(due, (entry) => entry.dueMs < nowMs - graceMs);
    try {
      const firings = onTime.map((entry) => ({ triggerId: entry.id, instantMs: entry.instantMs }));
      const { fired, created } = await fireTriggers(db, firings, { priority: 'normal', at: new Date(nowMs) });
      this.#scheduling.ready(created);
      const latenessMs = Math.max(0, ...onTime.map((entry) => nowMs - entry.dueMs));
      ctx.telemetry.emit('fired', { triggers: fired, runs: created, latenessMs });
      for (const entry of onTime) this.#queueAfter(entry.trigger, entry.instantMs);
      // what was slept through (a suspended machine, a long outage) is missed: the trigger's policy says what becomes of it
      if (overslept.length > 0) await this.#reload(overslept.map((entry) => entry.trigger.row.job_id));
    } catch (error) {
      for (const entry of due) this.#queue.push(entry);
      throw error;
    }
  }

  #queueAfter(trigger: Trigger, instantMs: number): void {
    this.#queueAt(trigger, nextInstant(trigger.schedule, instantMs));
  }

  #queueAt(trigger: Trigger, instantMs: number | undefined): void {
    if (instantMs === undefined) return;
    this.#queue.push({ id: trigger.row.id, dueMs: instantMs + trigger.row.offset_ms, instantMs, trigger });
  }

  /** Reads the triggers of these jobs anew. They leave the queue only once the read has succeeded. */
  async #reload(jobIds: readonly string[]): Promise<void> {
    const ids = [...new Set(jobIds)];
    const rows = await activeTriggers(this.#scheduling.db, ids).catch((error: unknown) => {
      for (const id of ids) this.#scheduling.changedJobs.offer(id);
      throw error;
    });
    for (const jobId of ids) {
      for (const triggerId of this.#byJob.get(jobId) ?? []) this.#queue.remove(triggerId);
      this.#byJob.delete(jobId);
    }
    await this.#take(rows);
  }

  async #take(rows: readonly TriggerRow[]): Promise<void> {
    const nowMs = this.#scheduling.time.now();
    const fire: Firing[] = [];
    const marks: Firing[] = [];
    for (const row of rows) {
      const trigger = this.#compile(row);
      if (trigger === undefined) continue;
      const arrival = arrive(row, trigger.schedule, nowMs);
      fire.push(...arrival.fire.map((instantMs) => ({ triggerId: row.id, instantMs })));
      await this.#note(trigger, arrival);
      if (arrival.catchups.length === 0)
        marks.push(...arrival.marks.map((instantMs) => ({ triggerId: row.id, instantMs })));
      this.#remember(row);
      this.#queueAt(trigger, arrival.next);
    }
    await this.#settle(fire, marks, new Date(nowMs));
  }

  /** A trigger that cannot be understood must not stop the others. */
  #compile(row: TriggerRow): Trigger | undefined {
    try {
      return { row, schedule: compileSchedule(specOf(row)) };
    } catch (error) {
      this.#scheduling.ctx.log.error({ err: error, trigger: row.id }, 'a trigger cannot be scheduled');
      return undefined;
    }
  }

  #remember(row: TriggerRow): void {
    const ids = this.#byJob.get(row.job_id) ?? new Set();
    this.#byJob.set(row.job_id, ids.add(row.id));
  }

  /** Catch-up work and the marks that move past it are one commit: missed instants are noted, or still missed. */
  async #note(trigger: Trigger, arrival: Arrival): Promise<void> {
    if (arrival.catchups.length === 0) return;
    const { id, catchup } = trigger.row;
    const policy = catchup === 'latest' || catchup === 'random' ? catchup : 'earliest';
    await this.#scheduling.db.transaction(async (tx) => {
      for (const { fromMs, toMs } of arrival.catchups) {
        const pieces = piecesOf(trigger.schedule, fromMs, toMs);
        const seed = Math.floor(Math.random() * 2 ** 30);
        await insertCatchup(tx, {
          trigger_id: id,
          from_at: new Date(fromMs),
          to_at: new Date(toMs),
          policy,
          pieces,
          seed,
        });
      }
      await skipInstants(
        tx,
        arrival.marks.map((instantMs) => ({ triggerId: id, instantMs })),
      );
    });
    this.#scheduling.work.catchup.ring();
  }

  async #settle(fire: readonly Firing[], marks: readonly Firing[], at: Date): Promise<void> {
    const { db } = this.#scheduling;
    if (fire.length > 0) this.#scheduling.ready((await fireTriggers(db, fire, { priority: 'normal', at })).created);
    if (marks.length > 0) await skipInstants(db, marks);
  }
}

function partition<T>(items: readonly Due<T>[], test: (item: Due<T>) => boolean): [Due<T>[], Due<T>[]] {
  const yes: Due<T>[] = [];
  const no: Due<T>[] = [];
  for (const item of items) (test(item) ? yes : no).push(item);
  return [yes, no];
}
