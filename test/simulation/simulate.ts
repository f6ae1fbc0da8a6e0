/**
 * One world from beginning to end: jobs, workers and schedulers; a time of chaos, in which everything goes wrong; a calm,
 * in which nothing does, until all work is done; and the verdict of the oracles.
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
  /** Empty if all promises were kept. */
  readonly faults: readonly string[];
  /** One line per event. */
  readonly trace: readonly string[];
}

/** A world that exceeds these is stuck in a cycle. */
const maxSteps = 4_000;
const maxCalmMs = 1_200 * second;

export async function simulate(bench: Bench, seed: number): Promise<Verdict> {
  await bench.wipe(seed);
  const world = new World(bench, seed);
  const life = new Life(world);
  const undo = world.replaceGlobals();
  try {
    await life.live();
    const faults = await judge(world, life.schedulers);
    const met = world.faults.map((fault) => `the product reported a fault: ${fault.message}`);
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

  /** Schedules the faults and the users' actions of the chaos. */
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

  /** Puts the whole machine to sleep. */
  #sleep(ms: number): void {
    this.#world.log('world', `sleeps for ${ms / second} s`);
    this.#world.clock.moveTo(this.#world.now + ms);
    this.schedulers.restartUptimes();
  }

  /** Ends the chaos: every process works and no job is paused, so all work must come to an end. */
  async #calmDown(): Promise<void> {
    this.#world.log('world', 'is calm');
    this.#world.chaos = false;
    for (const worker of this.#workers) worker.start();
    await this.#users.unpauseAll();
    const dues = this.#users.jobs.flatMap((job) => job.triggers.map(({ endMs, offsetMs }) => endMs + offsetMs));
    const lastMs = this.#world.now + maxCalmMs;
    await this.#until(Math.max(this.#world.now, ...dues) + 10 * second);
    while (!this.schedulers.isUpFor(10 * second) || !(await this.#isIdle())) {
      if (this.#world.steps.length > maxSteps || this.#world.now > lastMs) return;
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
    // only the first fault matters: others may follow from it
    if (ledger.faults.length > 0) return ledger.faults.map((fault) => `step ${fault.step}: ${fault.message}`);
  }
  return [
    ...ledger.end(),
    ...firings.judge(ledger.fired, schedulers.uptimes, world.now),
    ...(await judgeActivity(world.db)),
  ];
}
