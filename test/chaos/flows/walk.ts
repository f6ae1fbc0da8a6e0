/**
 * Executions of flows under way (load.ts) while an `up`, a conductor beside it and workers die at checkpoints, freeze, and lose
 * their connections. In the end nothing may be lost or doubled (oracle.ts).
 */
import { type Checkpoint, checkpoints } from '../../../src/app/checkpoints.ts';
import { sql } from '../../../src/kernel/sql.ts';
import { until } from '../../harness/until.ts';
import { dieAtEach, type Dying } from '../crash-walk.ts';
import { makeDice } from '../dice.ts';
import { applyFlows, FlowLoad } from './load.ts';
import { flowFaults, waitUntilEnded } from './oracle.ts';
import type { FlowKind } from './workload.ts';
import { ChaosInstallation } from '../installation.ts';

/** Longer than any lease, retry, or silence after which others take over. */
const stalledMs = 75_000;
const patienceMs = 60_000;
/** Executions that end between two blows. */
const endsBetween = 30;

export interface FlowWalkOptions {
  readonly seed: number;
  /** Executions under way at any time. */
  readonly atOnce: number;
  /** A process dies at a random passage of its checkpoint, from the first to this one. */
  readonly passages: number;
  readonly mixture?: readonly FlowKind[];
}

export class FlowWalk implements Dying {
  readonly installation: ChaosInstallation;
  readonly options: FlowWalkOptions;
  readonly dice;
  readonly died = new Set<Checkpoint>();
  readonly faults: string[] = [];
  readonly load: FlowLoad;
  readonly #over = new AbortController();
  readonly #feeding: Promise<void>;
  readonly #ended = new AbortController();
  readonly #answering: Promise<void>;

  private constructor(installation: ChaosInstallation, options: FlowWalkOptions) {
    this.installation = installation;
    this.options = options;
    this.dice = makeDice(options.seed);
    this.load = new FlowLoad(installation, this.dice, options.mixture);
    this.#feeding = this.load.feed(options.atOnce, this.#over.signal);
    // its failure is that of `finish`
    this.#feeding.catch(() => {});
    this.#answering = this.load.answerUntil(this.#ended.signal);
    this.#answering.catch(() => {});
  }

  static async start(options: FlowWalkOptions): Promise<FlowWalk> {
    const env = { MILLRACE_CONDUCTOR_CALLS: '6', MILLRACE_TASK_USER: 'root' };
    const parts = { hosts: 0, workers: 2, flows: { conductors: 1 }, leaseMs: 3_000, env };
    const installation = await ChaosInstallation.start(parts);
    try {
      await applyFlows(installation);
      return new FlowWalk(installation, options);
    } catch (error) {
      await installation.close();
      throw error;
    }
  }

  /** Conductors, workers and the API die at each of these. */
  async dieAt(names: readonly Checkpoint[]): Promise<void> {
    await Promise.race([this.#dieAt(names), this.#feeding, this.#answering]);
  }

  async #dieAt(names: readonly Checkpoint[]): Promise<void> {
    const { api, conductors, workers } = this.installation;
    const some = (all: readonly Checkpoint[]) => all.filter((name) => names.includes(name));
    const takeover = 'takeover.put';
    await Promise.all([
      dieAtEach(this, [api, ...conductors], some(checkpoints.conductor.filter((name) => name !== takeover))),
      // the first worker is left alone
      dieAtEach(this, workers.slice(1), some(checkpoints.worker)),
    ]);
    if (names.includes(takeover)) await this.#dieTakingOver(takeover);
    // separately, because nobody else gets on while the API dies at every request
    await dieAtEach(this, [api], some(checkpoints.api));
  }

  /** A conductor dies while it takes over what the `up` has left, whose next process takes over the rest. */
  async #dieTakingOver(name: Checkpoint): Promise<void> {
    const { api, conductors } = this.installation;
    for (const conductor of conductors) {
      await conductor.restart({ MILLRACE_CHECKPOINT: `${name}:2` });
      await this.#alive(conductors.length + 1);
      const isAtWork = async (): Promise<boolean | undefined> => (await this.installation.callsUnderWay(api.pid)) > 10;
      await until('calls are under way', isAtWork, patienceMs);
      await api.kill();
      const { signal } = await conductor.ending();
      if (signal === 'SIGKILL') this.died.add(name);
      await Promise.all([api.restart(), conductor.restart()]);
    }
  }

  async #alive(count: number): Promise<void> {
    const isAlive = async (): Promise<boolean | undefined> => (await this.installation.livingConductors()) >= count;
    await until(`${count} conductors are alive`, isAlive, patienceMs);
  }

  /** A conductor freezes until the other one has taken it for dead, and goes on as if nothing had happened. */
  async freeze(): Promise<void> {
    const [conductor] = this.installation.conductors;
    conductor?.signal('SIGSTOP');
    const living = (): Promise<number> => this.installation.livingConductors();
    await until('it is dead', async () => (await living()) === 1 || undefined, patienceMs);
    await this.goOn();
    conductor?.signal('SIGCONT');
    await until('it is back', async () => (await living()) === 2 || undefined, patienceMs);
  }

  /** All connections of the conductor, and half of all. */
  async loseConnections(): Promise<void> {
    await this.installation.terminateBackends('millrace conductor%');
    await this.installation.terminateBackends('millrace%', 0.5);
    await this.goOn();
  }

  /** PostgreSQL ends as by a crash, as by an operator, and with one of its processes. */
  async restartDatabase(): Promise<void> {
    for (const mode of ['immediate', 'fast'] as const) {
      await this.installation.restartDatabase(mode);
      await this.goOn();
    }
    await this.installation.crashDatabase();
    await this.goOn();
  }

  /** Waits until so many are under way at once. */
  async busy(count: number): Promise<void> {
    const isBusy = async (): Promise<boolean | undefined> => (await this.load.underWay()) >= count || undefined;
    await Promise.race([until(`${count} are under way`, isBusy, 2 * patienceMs), this.#feeding]);
  }

  /** Waits until further executions have ended. */
  async goOn(): Promise<void> {
    const ended = async (): Promise<number> =>
      (
        await this.installation.db.one<{ n: number }>(
          sql`select count(*)::integer as n from execution where status > 2`,
        )
      ).n;
    const wanted = (await ended()) + endsBetween;
    const going = until('executions go on', async () => (await ended()) >= wanted || undefined, 2 * patienceMs);
    await Promise.race([going, this.#feeding]);
  }

  /** Ends the load, waits until everything has ended, and returns all faults. */
  async finish(): Promise<readonly string[]> {
    this.#over.abort();
    await this.#feeding;
    const { installation, load } = this;
    const stalled = await waitUntilEnded(installation.db, stalledMs);
    if (stalled.length > 0) stalled.push(await installation.describeConductors());
    this.#ended.abort();
    await this.#answering;
    const evidence = { calls: await installation.calls(), executed: await installation.executed() };
    const ended = installation.roles.flatMap((role) => role.faults);
    const faults = [...this.faults, ...stalled, ...(await flowFaults(installation.db, load, evidence)), ...ended];
    return faults.length > 0 ? [...faults, installation.output()] : [];
  }

  async close(): Promise<void> {
    this.#over.abort();
    this.#ended.abort();
    await this.installation.close();
  }
}

/** Checkpoints that this walk can reach. */
export const flowWalked: readonly Checkpoint[] = [...checkpoints.conductor, ...checkpoints.worker, ...checkpoints.api];
