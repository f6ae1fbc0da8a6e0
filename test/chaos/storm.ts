/**
 * A storm over a working installation: processes are killed and frozen, the database loses connections and crashes, jobs
 * are paused and unpaused, one blow after the other in an order that a seed decides. Afterwards everything must have
 * happened exactly once (see oracle.ts).
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from '../../src/kernel/sql.ts';
import { isProcessRunning } from '../../src/kernel/process/process-stat.ts';
import { descendants } from '../harness/process-tree.ts';
import { until } from '../harness/until.ts';
import { ChaosInstallation } from './installation.ts';
import type { RoleProcess } from './role-process.ts';
import { type Dice, makeDice } from './dice.ts';
import { everyMs, fan, fanTasks, meeting } from './workload.ts';

export interface StormOptions {
  readonly seed: number;
  /** Approximate number of runs: half are caught up, half fire during the storm. */
  readonly runs: number;
  /** Each round contains every kind of blow once. */
  readonly rounds: number;
  readonly leaseMs: number;
}

export interface Aftermath {
  readonly faults: readonly string[];
  readonly runs: number;
  /** Hand-outs without a result, because the lease was lost. */
  readonly handedOutAgain: number;
  readonly blows: readonly string[];
}

/** Longer than a lease and the sweep that ends it. */
const frozenMs = ({ leaseMs }: StormOptions): number => leaseMs + 2_000;
const orphansGoneMs = 15_000;
/** Approximate duration of a round. */
const roundSeconds = 20;
/** How long to wait for a worker to hold a run before it is struck. */
const maxBusyWaitMs = 2_000;

export async function storm(options: StormOptions): Promise<Aftermath> {
  const installation = await ChaosInstallation.start({ hosts: 2, workers: 3, leaseMs: options.leaseMs });
  try {
    const paused = await begin(installation, options);
    const blows: string[] = [];
    const dice = makeDice(options.seed);
    for (let round = 0; round < options.rounds; round++) {
      for (const blow of dice.shuffle(Object.keys(kinds))) {
        blows.push(blow);
        await kinds[blow]?.({ installation, dice, options, paused });
        await sleep(dice.upTo(500));
      }
    }
    await installation.pause(paused, false);
    const faults = await installation.faultsWhenDone();
    const { runs, again } = await installation.db.one<{ runs: number; again: number }>(sql`
      select count(*) as runs, coalesce(sum(lease - 1), 0) as again from run`);
    return { faults: faults.length > 0 ? [...faults, installation.output()] : [], runs, handedOutAgain: again, blows };
  } finally {
    await installation.close();
  }
}

/** Starts the work; returns the job that is paused now and then. */
async function begin(installation: ChaosInstallation, { runs, rounds }: StormOptions): Promise<string> {
  const seconds = rounds * roundSeconds;
  const nowMs = Math.ceil(Date.now() / everyMs) * everyMs;
  const past = Math.ceil(runs / 2 / 3 / fanTasks);
  for (const catchup of ['earliest', 'latest', 'random'] as const)
    await installation.apply(fan(`past ${catchup}`, { firstMs: nowMs - 86_400_000, count: past, catchup }));
  const live = Math.max(2, Math.round(runs / 2 / fanTasks / seconds));
  // paused until the meeting exists, because it would miss earlier firings
  const fans = Array.from({ length: live }, (_, i) =>
    fan(`live ${i}`, { firstMs: nowMs, count: seconds, paused: true }),
  );
  const ids = await inOrder(fans, (each) => installation.apply(each));
  await installation.apply(meeting('meeting', fans.slice(0, 2)));
  await inOrder(ids, (id) => installation.pause(id, false));
  return ids[0] ?? '';
}

async function inOrder<T, R>(items: readonly T[], work: (each: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  for (const each of items) results.push(await work(each));
  return results;
}

interface Scene {
  readonly installation: ChaosInstallation;
  readonly dice: Dice;
  readonly options: StormOptions;
  /** The job that is paused now and then. */
  readonly paused: string;
}

const kinds: Readonly<Record<string, (scene: Scene) => Promise<void>>> = {
  'kill a worker': killWorker,
  'kill a host': ({ installation, dice }) => dice.next(installation.hosts).restart(),
  'kill the launcher': async ({ installation }) => installation.launcher?.restart(),
  'kill the API': ({ installation }) => installation.api.restart(),
  'freeze a worker until its lease is lost': async (scene) => freeze(await busyWorker(scene), frozenMs(scene.options)),
  'freeze the API': ({ installation, dice }) => freeze(installation.api, dice.upTo(1_000)),
  'freeze the API for longer than a lease': ({ installation, options }) => freeze(installation.api, frozenMs(options)),
  'freeze a host': ({ installation, dice }) => freeze(dice.next(installation.hosts), dice.upTo(1_000)),
  'freeze a host and let the other take over': takeOver,
  'drain a worker': async ({ installation, dice }) => dice.next(installation.workers).signal('SIGTERM'),
  'terminate half of all connections': ({ installation }) => installation.terminateBackends('millrace%', 0.5),
  'terminate the connections of the scheduler': ({ installation }) => installation.terminateBackends('millrace host%'),
  'crash the database': ({ installation }) => installation.crashDatabase(),
  'restart the database': ({ installation }) => installation.restartDatabase(),
  'pause a job and unpause it': async ({ installation, dice, paused }) => {
    await installation.pause(paused, true);
    await sleep(dice.upTo(1_000));
    await installation.pause(paused, false);
  },
};

async function freeze(role: RoleProcess, ms: number): Promise<void> {
  role.signal('SIGSTOP');
  await sleep(ms);
  role.signal('SIGCONT');
}

/** A random worker, after waiting until it holds a run. */
async function busyWorker({ installation, dice }: Scene): Promise<RoleProcess> {
  const worker = dice.next(installation.workers);
  const isBusy = async (): Promise<boolean> => (await installation.runsHeldBy(worker.name)) > 0;
  await until('it holds a run', async () => (await isBusy()) || undefined, maxBusyWaitMs).catch(() => {});
  return worker;
}

/** Kills a worker; its tasks and its watcher must end with it. */
async function killWorker(scene: Scene): Promise<void> {
  const worker = await busyWorker(scene);
  const [, ...below] = descendants(worker.pid);
  await worker.restart();
  await until(
    'the tasks of a killed worker are gone',
    () => below.every((pid) => !isProcessRunning(pid)) || undefined,
    orphansGoneMs,
  );
}

/** A frozen host does not know that its lock is lost: when it wakes, there are two schedulers for a moment. */
async function takeOver({ installation, dice }: Scene): Promise<void> {
  const host = dice.next(installation.hosts);
  host.signal('SIGSTOP');
  await installation.terminateBackends('millrace host%');
  await sleep(dice.upTo(2_000));
  host.signal('SIGCONT');
}
