/**
 * One world from beginning to end: some jobs, workers and schedulers; a time in which everything goes wrong; a time in
 * which nothing does, until all is done; and the verdict of the oracles.
 */
import { sql } from '../../src/kernel/sql.ts';
import { judgeActivity } from './activity.ts';
import type { Bench } from './bench.ts';
import { beginMs, chaosMs, second, someJobs } from './documents.ts';
import { FiringsOracle } from './firings.ts';
import { fortuneOf } from './fortune.ts';
import { Gateway } from './gateway.ts';
import { type Commit, readJournal } from './journal.ts';
import { Ledger } from './ledger.ts';
import { Schedulers } from './schedulers.ts';
import { Users } from './users.ts';
import { SimulatedWorker } from './worker.ts';
import { World } from './world.ts';

export interface Verdict {
  /** None: all promises were kept. */
  readonly faults: readonly string[];
  /** What happened, a line each. */
  readonly trace: readonly string[];
}

/** Beyond these something goes round in circles. */
const mostSteps = 4_000;
const longestCalmMs = 1_200 * second;

export async function simulate(bench: Bench, seed: number): Promise<Verdict> {
  await bench.wipe(seed);
  const world = new World(bench, seed);
  const life = new Life(world);
  const undo = world.replaceGlobals();
  try {
    await life.live();
    const faults = await judge(world, life.schedulers);
    const met = world.faults.map((fault) => `the product met a fault: ${fault.message}`);
    return { faults: [...met, ...faults], trace: world.trace };
  } catch (error) {
    return { faults: [`step ${world.steps.length - 1}: ${String(error)}`], trace: world.trace };
  } finally {
    undo();
  }
}

class Life {
  readonly schedulers: Schedulers;
  readonly #world: World;
  readonly #gateway: Gateway;
  readonly #users: Users;
  readonly #workers: readonly SimulatedWorker[];

  constructor(world: World) {
    this.#world = world;
    this.schedulers = new Schedulers(world);
    this.#gateway = new Gateway(world);
    this.#users = new Users(world);
    const fortune = fortuneOf(world, this.#users);
    this.#workers = Array.from(
      { length: world.random.int(2, 3) },
      (_, i) => new SimulatedWorker(world, this.#gateway, i + 1, fortune),
    );
  }

  async live(): Promise<void> {
    await this.#users.begin(someJobs(this.#world.random));
    this.schedulers.start();
    for (const worker of this.#workers) worker.start();
    this.#plan();
    await this.#until(beginMs + chaosMs);
    await this.#calmDown();
  }

  async #until(atMs: number): Promise<void> {
    while (this.#world.now < atMs) {
      await this.#world.turn(this.schedulers.fate);
      this.schedulers.tend();
    }
  }

  /** What goes wrong, and what users do, in the time of chaos. */
  #plan(): void {
    const { random } = this.#world;
    this.#sometime(random.int(2, 7), () => this.#users.act());
    this.#sometime(random.int(0, 2), () => this.schedulers.end());
    this.#sometime(random.int(0, 1), () => this.schedulers.start());
    this.#sometime(random.int(0, 1), () => this.#gateway.die());
    for (const worker of this.#workers) {
      this.#sometime(random.int(0, 1), () => worker.freeze(random.pick([8, 20, 40, 60]) * second));
      this.#sometime(random.int(0, 1), () => {
        if (random.chance(0.5)) worker.die();
        else worker.leave();
        this.#world.after(random.pick([0, 2, 20, 50]) * second, () => worker.start());
      });
    }
    if (random.chance(0.15)) this.#sometime(1, () => this.#sleep(random.pick([40, 70, 130]) * second));
  }

  #sometime(times: number, happen: () => Promise<void> | void): void {
    for (let i = 0; i < times; i++) {
      this.#world.after(this.#world.random.int(0, chaosMs), () => (this.#world.chaos ? happen() : undefined));
    }
  }

  /** The whole machine, with all that is on it. */
  #sleep(ms: number): void {
    this.#world.tell('world', `sleeps for ${ms / second} s`);
    this.#world.clock.moveTo(this.#world.now + ms);
    this.schedulers.overslept();
  }

  /** Everybody is well and nobody pauses anything: now all must come to an end. */
  async #calmDown(): Promise<void> {
    this.#world.tell('world', 'is calm');
    this.#world.chaos = false;
    for (const worker of this.#workers) worker.start();
    await this.#users.unpauseAll();
    const dues = this.#users.jobs.flatMap((job) => job.triggers.map(({ endMs, offsetMs }) => endMs + offsetMs));
    const lastMs = this.#world.now + longestCalmMs;
    await this.#until(Math.max(this.#world.now, ...dues) + 10 * second);
    while (!this.schedulers.isUpFor(10 * second) || !(await this.#isIdle())) {
      if (this.#world.steps.length > mostSteps || this.#world.now > lastMs) return;
      await this.#until(this.#world.now + 5 * second);
    }
  }

  async #isIdle(): Promise<boolean> {
    const { busy } = await this.#world.db.one<{ busy: boolean }>(sql`
      select exists (select 1 from live) or exists (select 1 from retry) or exists (select 1 from catchup)
          or exists (select 1 from held) or exists (select 1 from backfill where ended_at is null) as busy`);
    return !busy;
  }
}

async function judge(world: World, schedulers: Schedulers): Promise<string[]> {
  const byStep = new Map<number, Commit[]>();
  for (const commit of await readJournal(world.db)) {
    byStep.set(commit.step, [...(byStep.get(commit.step) ?? []), commit]);
  }
  const ledger = new Ledger(world.names);
  const firings = new FiringsOracle();
  for (const step of world.steps) {
    firings.take(step);
    ledger.take(step, byStep.get(step.number) ?? []);
    // the first fault is the one to look at: others may follow from it
    if (ledger.faults.length > 0) return ledger.faults.map((fault) => `step ${fault.step}: ${fault.message}`);
  }
  return [
    ...ledger.end(),
    ...firings.judge(ledger.fired, schedulers.uptimes, world.now),
    ...(await judgeActivity(world.db)),
  ];
}
