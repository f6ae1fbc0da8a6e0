/**
 * Executions of flows under way (flow-load.ts) while an `up`, a conductor beside it and workers die at checkpoints, freeze, and lose
 * their connections. In the end nothing may be lost or doubled (flow-oracle.ts).
 */
import { type Checkpoint, checkpoints } from '../../src/app/checkpoints.ts';
import { sql } from '../../src/kernel/sql.ts';
import { until } from '../harness/until.ts';
import { dieAtEach, type Dying } from './crash-walk.ts';
import { makeDice } from './dice.ts';
import { applyFlows, FlowLoad } from './flow-load.ts';
import { flowFaults, waitUntilEnded } from './flow-oracle.ts';
import { ChaosInstallation } from './installation.ts';

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
    this.load = new FlowLoad(installation, this.dice);
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
    await Promise.all([
      dieAtEach(this, [api, ...conductors], some(checkpoints.conductor)),
      // the first worker is left alone
      dieAtEach(this, workers.slice(1), some(checkpoints.worker)),
    ]);
    // separately, because nobody else gets on while the API dies at every request
    await dieAtEach(this, [api], some(checkpoints.api));
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
