/**
 * A storm over an installation at work: processes are killed and frozen, the database loses connections and crashes,
 * jobs are paused and unpaused, one blow after the other in an order that a seed decides. Afterwards everything must
 * have happened once (see oracle.ts).
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
  /** About so many runs: half of them catch-up, half of them live while it storms. */
  readonly runs: number;
  /** Every kind of blow falls once in a round. */
  readonly rounds: number;
  readonly leaseMs: number;
}

export interface Aftermath {
  readonly faults: readonly string[];
  readonly runs: number;
  /** Hand-outs that came to nothing, because a lease was lost. */
  readonly handedOutAgain: number;
  readonly blows: readonly string[];
}

/** Longer than a lease and the sweep that ends it. */
const frozenMs = ({ leaseMs }: StormOptions): number => leaseMs + 2_000;
const orphansGoneMs = 15_000;
/** How long a round takes, roughly. */
const roundSeconds = 20;
/** How long a worker may take to get something to do before it is struck. */
const busyWithinMs = 2_000;

export async function storm(options: StormOptions): Promise<Aftermath> {
  const town = await ChaosInstallation.start({ hosts: 2, workers: 3, leaseMs: options.leaseMs });
  try {
    const paused = await begin(town, options);
    const blows: string[] = [];
    const dice = makeDice(options.seed);
    for (let round = 0; round < options.rounds; round++) {
      for (const blow of dice.shuffled(Object.keys(kinds))) {
        blows.push(blow);
        await kinds[blow]?.({ town, dice, options, paused });
        await sleep(dice.upTo(500));
      }
    }
    await town.pause(paused, false);
    const faults = await town.faultsWhenDone();
    const { runs, again } = await town.db.one<{ runs: number; again: number }>(sql`
      select count(*) as runs, coalesce(sum(lease - 1), 0) as again from run`);
    return { faults: faults.length > 0 ? [...faults, town.output()] : [], runs, handedOutAgain: again, blows };
  } finally {
    await town.close();
  }
}

/** Starts the work; returns the job that is paused now and then. */
async function begin(town: ChaosInstallation, { runs, rounds }: StormOptions): Promise<string> {
  const seconds = rounds * roundSeconds;
  const nowMs = Math.ceil(Date.now() / everyMs) * everyMs;
  const past = Math.ceil(runs / 2 / 3 / fanTasks);
  for (const catchup of ['earliest', 'latest', 'random'] as const)
    await town.apply(fan(`past ${catchup}`, { firstMs: nowMs - 86_400_000, count: past, catchup }));
  const live = Math.max(2, Math.round(runs / 2 / fanTasks / seconds));
  // paused until the meeting is there, which would miss what came before it
  const fans = Array.from({ length: live }, (_, i) =>
    fan(`live ${i}`, { firstMs: nowMs, count: seconds, paused: true }),
  );
  const ids = await inOrder(fans, (each) => town.apply(each));
  await town.apply(meeting('meeting', fans.slice(0, 2)));
  await inOrder(ids, (id) => town.pause(id, false));
  return ids[0] ?? '';
}

async function inOrder<T, R>(items: readonly T[], work: (each: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  for (const each of items) results.push(await work(each));
  return results;
}

interface Scene {
  readonly town: ChaosInstallation;
  readonly dice: Dice;
  readonly options: StormOptions;
  /** The job that is paused now and then. */
  readonly paused: string;
}

const kinds: Readonly<Record<string, (scene: Scene) => Promise<void>>> = {
  'kill a worker': killWorker,
  'kill a host': ({ town, dice }) => dice.next(town.hosts).restart(),
  'kill the launcher': ({ town }) => town.launcher.restart(),
  'kill the API': ({ town }) => town.api.restart(),
  'freeze a worker until its lease is lost': async (scene) => freeze(await busyWorker(scene), frozenMs(scene.options)),
  'freeze the API': ({ town, dice }) => freeze(town.api, dice.upTo(1_000)),
  'freeze the API for longer than a lease': ({ town, options }) => freeze(town.api, frozenMs(options)),
  'freeze a host': ({ town, dice }) => freeze(dice.next(town.hosts), dice.upTo(1_000)),
  'freeze a host and let the other take over': takeOver,
  'drain a worker': async ({ town, dice }) => dice.next(town.workers).signal('SIGTERM'),
  'terminate half of all connections': ({ town }) => town.terminateBackends('millrace%', 0.5),
  'terminate the connections of the scheduler': ({ town }) => town.terminateBackends('millrace host%'),
  'crash the database': ({ town }) => town.crashDatabase(),
  'restart the database': ({ town }) => town.restartDatabase(),
  'pause a job and unpause it': async ({ town, dice, paused }) => {
    await town.pause(paused, true);
    await sleep(dice.upTo(1_000));
    await town.pause(paused, false);
  },
};

async function freeze(role: RoleProcess, ms: number): Promise<void> {
  role.signal('SIGSTOP');
  await sleep(ms);
  role.signal('SIGCONT');
}

/** One that holds runs, if there is any. */
async function busyWorker({ town, dice }: Scene): Promise<RoleProcess> {
  const worker = dice.next(town.workers);
  const isBusy = async (): Promise<boolean> => (await town.runsHeldBy(worker.name)) > 0;
  await until('it holds a run', async () => (await isBusy()) || undefined, busyWithinMs).catch(() => {});
  return worker;
}

/** Neither its tasks nor its watcher outlive it. */
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

/** The frozen one does not know that its lock is lost: when it wakes there are two, for a moment. */
async function takeOver({ town, dice }: Scene): Promise<void> {
  const host = dice.next(town.hosts);
  host.signal('SIGSTOP');
  await town.terminateBackends('millrace host%');
  await sleep(dice.upTo(2_000));
  host.signal('SIGCONT');
}
