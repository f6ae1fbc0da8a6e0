/**
 * A simulated world: its clock, its agenda, the messages under way and the log of its steps. One thing happens at a time,
 * in a random order. Everything but the product and its database is simulated.
 */
import type { HintKind, Hints } from '../../src/contract/channels.ts';
import type { EngineContext } from '../../src/contract/context.ts';
import type { ClaimedRun } from '../../src/contract/wire.ts';
import { CallFailed } from '../../src/http/client.ts';
import { type Db, onPool } from '../../src/kernel/sql.ts';
import { makeContext } from '../harness/engine-context.ts';
import type { Bench } from './bench.ts';
import { useClock, VirtualClock } from './clock.ts';
import { beginMs, second } from './documents.ts';
import { Door, type Fate, type PendingStatement, type Process } from './door.ts';
import { markStep } from './journal.ts';
import { Random } from './random.ts';
import { clockTime, type Deed, type Step } from './steps.ts';

interface Planned {
  readonly atMs: number;
  readonly happen: () => Promise<void> | void;
}

/** After a scheduler's statement has waited this long, time stands still until it is served. */
const maxWaitMs = 10 * second;
const tenant = { id: '00000000-0000-7000-8000-000000000001', name: 'default' };

export class World {
  readonly seed: number;
  readonly random: Random;
  readonly clock = new VirtualClock(beginMs);
  readonly door: Door;
  /** Direct access to the database, for the current step and for reading. */
  readonly db: Db;
  /** The engine context of the gateway and its callers. */
  readonly ctx: EngineContext;
  readonly steps: Step[] = [];
  /** A readable log, one line per event. */
  readonly trace: string[] = [];
  /** While true, things go wrong: messages are lost, processes die. */
  chaos = true;
  /** Names of tasks and triggers, by id. */
  readonly names = new Map<string, string>();
  readonly #runNames = new Map<string, string>();
  readonly #bench: Bench;
  readonly #agenda: Planned[] = [];
  readonly #contexts: { readonly faults: readonly unknown[] }[] = [];
  readonly #listeners = new Set<{ process: Process; kind: string; listener: () => void }>();
  #busySinceMs: number | undefined;

  constructor(bench: Bench, seed: number) {
    this.#bench = bench;
    this.seed = seed;
    this.random = new Random(`world ${seed}`);
    this.door = new Door(bench.client, () => this.now);
    this.db = onPool(this.door.openPool);
    useClock(this.clock);
    this.ctx = this.contextOf({ name: 'gateway', alive: true }, this.door.openPool);
  }

  /** Replaces the other sources of randomness and time that the product uses; returns a function that restores them. */
  replaceGlobals(): () => void {
    const chance = new Random(`Math ${this.seed}`);
    const random = Math.random;
    const now = performance.now.bind(performance);
    Math.random = () => chance.next();
    performance.now = () => this.now - beginMs;
    return () => {
      Math.random = random;
      performance.now = now;
    };
  }

  get now(): number {
    return this.clock.now();
  }

  /** Faults that the product itself reported. Broken connections do not count. */
  get faults(): Error[] {
    return this.#contexts.flatMap(({ faults }) => faults.filter((fault) => fault instanceof Error));
  }

  /** Runs are named after task, instant and attempt, because their ids differ between replays. */
  nameRun({ run, task, instant, attempt, lease }: ClaimedRun): string {
    const place = `${this.names.get(task ?? '')} ${instant?.slice(11, 19)} #${attempt}`;
    if (!this.#runNames.has(run)) {
      const same = [...this.#runNames.values()].filter((name) => name.startsWith(place)).length;
      this.#runNames.set(run, same === 0 ? place : `${place} (${same + 1})`);
    }
    return `${this.runName(run)}/${lease}`;
  }

  get runCount(): number {
    return this.#runNames.size;
  }

  runName(run: string): string {
    return this.#runNames.get(run) ?? 'a run';
  }

  log(who: string, what: string): void {
    this.trace.push(`${clockTime(this.now)} ${who}: ${what}`);
  }

  /** The engine context of a process of this world. */
  contextOf(process: Process, pool: EngineContext['pool']): EngineContext {
    const base = makeContext({ address: this.#bench.address, pool, time: this.clock.timeOf(process) });
    this.#contexts.push(base);
    return { ...base, tenant, hints: this.#hintsOf(process) };
  }

  /** Sends a hint to each listener by a message of its own, which may be lost. */
  #hintsOf(process: Process): Hints {
    return {
      send: (kind) => {
        for (const entry of this.#listeners) {
          if (entry.kind === kind) this.send(() => void (entry.process.alive && entry.listener()));
        }
      },
      on: (kind, listener) => this.on(process, kind, listener),
    };
  }

  on(process: Process, kind: HintKind, listener: () => void): () => void {
    const entry = { process, kind, listener };
    this.#listeners.add(entry);
    return () => void this.#listeners.delete(entry);
  }

  /** Schedules an action. Actions that are due at the same time happen in any order. */
  after(ms: number, happen: Planned['happen']): void {
    this.#agenda.push({ atMs: this.now + ms, happen });
  }

  /** Sends a message. During the chaos it may be lost, duplicated, delayed or overtaken. */
  send(deliver: Planned['happen']): void {
    const { random } = this;
    if (!this.chaos) return this.after(random.int(0, 20), deliver);
    const copies = random.weighted({ '0': 6, '1': 88, '2': 6 });
    for (let i = 0; i < Number(copies); i++) this.after(this.#delay(), deliver);
  }

  #delay(): number {
    const pace = this.random.weighted({ quick: 5, slow: 4, late: 1 });
    return pace === 'quick' ? 0 : pace === 'slow' ? this.random.int(1, 300) : this.random.int(1, 20) * second;
  }

  /** Performs one uninterrupted action on the product. The product may reject it with a status below 500. */
  async step<T>(who: string, what: string, deed: Deed, work: () => Promise<T>): Promise<T | undefined> {
    const step = await this.#begin(who, what, deed);
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof CallFailed) || error.status >= 500) throw error;
      step.refused = true;
      this.log(who, `refused: ${error.message}`);
      return undefined;
    }
  }

  async #begin(who: string, what: string, deed: Deed, atMs = this.now): Promise<Step> {
    const step = this.#note(who, what, deed, atMs);
    await markStep(this.db, step.number);
    return step;
  }

  #note(who: string, what: string, deed: Deed, atMs: number): Step {
    const step = { number: this.steps.length, atMs, deed, refused: false };
    this.steps.push(step);
    this.log(who, `${what} (step ${step.number})`);
    return step;
  }

  /** Lets one thing happen, or moves the clock. `fate` decides what happens to a scheduler's statement. */
  async turn(fate: () => Fate): Promise<void> {
    // code that was answered or woken runs on until it waits for the world again
    await new Promise((resolve) => setImmediate(resolve));
    const { waiting } = this.door;
    const due = this.#agenda.filter(({ atMs }) => atMs <= this.now);
    this.#busySinceMs = waiting.length === 0 ? undefined : (this.#busySinceMs ?? this.now);
    const late = this.#busySinceMs !== undefined && this.now - this.#busySinceMs > maxWaitMs;
    const idles = due.length === 0 && !late && this.random.chance(0.05);
    if (waiting.length + due.length === 0 || idles) return this.#advance();
    const chosen = this.random.int(0, waiting.length + due.length - 1);
    const pending = waiting[chosen];
    if (pending !== undefined) return this.#serve(pending, fate());
    const planned = due[chosen - waiting.length];
    if (planned === undefined) throw new Error('nothing to choose from');
    this.#agenda.splice(this.#agenda.indexOf(planned), 1);
    await planned.happen();
  }

  /** A statement that only reads leaves nothing in the journal, so its step needs no mark there. */
  async #serve(pending: PendingStatement, fate: Fate): Promise<void> {
    const { process, what, atMs, isRead } = pending;
    const description = fate === 'served' ? what : `${what}, ${fate}`;
    const deed = { kind: 'statement' } as const;
    if (isRead) this.#note(process.name, description, deed, atMs);
    else await this.#begin(process.name, description, deed, atMs);
    await this.door.serve(pending, fate);
  }

  /** Moves the clock to the next planned action, which lets sleepers oversleep a little, or to the next sleeper. */
  #advance(): void {
    const planned = Math.min(...this.#agenda.map(({ atMs }) => atMs));
    const waking = this.clock.nextWaking ?? planned;
    const to = this.random.chance(0.85) ? planned : Math.min(planned, waking);
    this.clock.moveTo(Math.min(Math.max(to, this.now + 1), this.now + 5 * second));
  }
}
