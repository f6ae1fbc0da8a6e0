/**
 * A simulated world: its clock, what is to happen when, the messages under way, and the log of what was done. Everything
 * happens one thing at a time, in an order that chance decides; the database is the only thing in it that is real.
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
import { type Asked, Door, type Fate, type Process } from './door.ts';
import { markStep } from './journal.ts';
import { Random } from './random.ts';
import { clockTime, type Deed, type Step } from './steps.ts';

interface Planned {
  readonly atMs: number;
  readonly happen: () => Promise<void> | void;
}

/** A scheduler's statements wait no longer than this while time goes on. */
const longestWaitMs = 10 * second;
const tenant = { id: '00000000-0000-7000-8000-000000000001', name: 'default' };

export class World {
  readonly seed: number;
  readonly random: Random;
  readonly clock = new VirtualClock(beginMs);
  readonly door: Door;
  /** Straight to the database, for a step that is under way and for looking. */
  readonly db: Db;
  /** What the gateway, and whoever speaks through it, gives an engine. */
  readonly ctx: EngineContext;
  readonly steps: Step[] = [];
  /** What happened, in words. */
  readonly trace: string[] = [];
  /** While set things go wrong: messages are lost, processes die. */
  chaos = true;
  /** Tasks and triggers by id. */
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

  /** What else the product takes chance and time from; answers how to give them back. */
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

  /** What the product itself called a fault; broken connections are none. */
  get faults(): Error[] {
    return this.#contexts.flatMap(({ faults }) => faults.filter((fault) => fault instanceof Error));
  }

  /** Runs are told by what they are for: ids differ from one replay to the next. */
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

  tell(who: string, what: string): void {
    this.trace.push(`${clockTime(this.now)} ${who}: ${what}`);
  }

  /** What an engine is given in a process of this world. */
  contextOf(process: Process, pool: EngineContext['pool']): EngineContext {
    const base = makeContext({ address: this.#bench.address, pool, time: this.clock.timeOf(process) });
    this.#contexts.push(base);
    return { ...base, tenant, hints: this.#hintsOf(process) };
  }

  /** Hints: each listener gets them by a message of its own, or not at all. */
  #hintsOf(process: Process): Hints {
    return {
      send: (kind) => {
        for (const heard of this.#listeners) {
          if (heard.kind === kind) this.send(() => void (heard.process.alive && heard.listener()));
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

  /** Happens once that time has come, in any order with what else is due. */
  after(ms: number, happen: Planned['happen']): void {
    this.#agenda.push({ atMs: this.now + ms, happen });
  }

  /** A message: in times of chaos it may be lost, come twice, or come late, overtaken by others. */
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

  /** Does one thing to the product, which nothing else comes between. A refusal is the product's good right. */
  async step<T>(who: string, what: string, deed: Deed, work: () => Promise<T>): Promise<T | undefined> {
    const step = await this.#begin(who, what, deed);
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof CallFailed) || error.status >= 500) throw error;
      step.refused = true;
      this.tell(who, `refused: ${error.message}`);
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
    this.tell(who, `${what} (step ${step.number})`);
    return step;
  }

  /** Lets one thing happen, or time go on. `fate` says what becomes of a scheduler's statement. */
  async turn(fate: () => Fate): Promise<void> {
    // whoever was answered or woken goes on until it waits for the world again
    await new Promise((resolve) => setImmediate(resolve));
    const { waiting } = this.door;
    const due = this.#agenda.filter(({ atMs }) => atMs <= this.now);
    this.#busySinceMs = waiting.length === 0 ? undefined : (this.#busySinceMs ?? this.now);
    const late = this.#busySinceMs !== undefined && this.now - this.#busySinceMs > longestWaitMs;
    const idles = due.length === 0 && !late && this.random.chance(0.05);
    if (waiting.length + due.length === 0 || idles) return this.#advance();
    const chosen = this.random.int(0, waiting.length + due.length - 1);
    const asked = waiting[chosen];
    if (asked !== undefined) return this.#serve(asked, fate());
    const planned = due[chosen - waiting.length];
    if (planned === undefined) throw new Error('nothing to choose from');
    this.#agenda.splice(this.#agenda.indexOf(planned), 1);
    await planned.happen();
  }

  /** A statement that only reads leaves nothing in the journal, and needs no mark in it. */
  async #serve(asked: Asked, fate: Fate): Promise<void> {
    const { process, what, atMs, reads } = asked;
    const told = fate === 'served' ? what : `${what}, ${fate}`;
    const deed = { kind: 'statement' } as const;
    if (reads) this.#note(process.name, told, deed, atMs);
    else await this.#begin(process.name, told, deed, atMs);
    await this.door.serve(asked, fate);
  }

  /** To the next thing planned, which lets sleepers oversleep a little, or to the next sleeper. */
  #advance(): void {
    const planned = Math.min(...this.#agenda.map(({ atMs }) => atMs));
    const waking = this.clock.nextWaking ?? planned;
    const to = this.random.chance(0.85) ? planned : Math.min(planned, waking);
    this.clock.moveTo(Math.min(Math.max(to, this.now + 1), this.now + 5 * second));
  }
}
