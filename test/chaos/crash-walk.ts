/**
 * Walks the table of checkpoints: each role in turn is started so that it dies at the next checkpoint, while the others
 * work. A feeder makes every kind of work come up again and again: catch-up by every policy, retries, pauses, backfills,
 * lost workers. Afterwards nothing may be lost or doubled (see oracle.ts).
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { type Checkpoint, checkpoints } from '../../src/app/checkpoints.ts';
import { until } from '../harness/until.ts';
import { type Dice, makeDice } from './dice.ts';
import { ChaosInstallation } from './installation.ts';
import type { Ending, RoleProcess } from './role-process.ts';
import { everyMs, type Fan, fan } from './workload.ts';

export interface WalkOptions {
  readonly seed: number;
  readonly rounds: number;
  /** The process dies at a random passage of the checkpoint, from the first to this one. */
  readonly passages: number;
  /** The checkpoints to die at. */
  readonly at: readonly Checkpoint[];
}

export interface Walked {
  readonly faults: readonly string[];
  /** Checkpoints at which a process died. */
  readonly died: ReadonlySet<Checkpoint>;
}

export interface Dying {
  readonly installation: ChaosInstallation;
  readonly options: Pick<WalkOptions, 'passages'>;
  readonly dice: Dice;
  readonly died: Set<Checkpoint>;
  readonly faults: string[];
}

interface Walk extends Dying {
  readonly options: WalkOptions;
  /** Aborted when the walk is over. */
  readonly over: AbortController;
}

/** Time until a process must have died at its checkpoint, on a busy machine. */
const maxPassageMs = 120_000;
/** How long the API runs, and then stays away, while others have not reached their checkpoints. */
const presentMs = 8_000;
const absentMs = 3_000;
/** Checkpoints that are passed only when workers are lost; they come last. */
const lastOnes: readonly Checkpoint[] = ['leases.sweep', 'leases.swept'];
/** Passed only once per process, once a minute, or for each other process that dies. */
const onceOnly: ReadonlySet<Checkpoint> = new Set([
  'scheduler.locked',
  'housekeeping.pass',
  'housekeeping.passed',
  'couriers.scrubbed',
]);

export async function crashWalk(options: WalkOptions): Promise<Walked> {
  const installation = await ChaosInstallation.start({ hosts: 2, workers: 2, leaseMs: 3_000 });
  const walk = {
    installation,
    options,
    dice: makeDice(options.seed),
    died: new Set<Checkpoint>(),
    faults: [],
    over: new AbortController(),
  };
  try {
    const feeding = feed(walk);
    for (let round = 0; round < options.rounds && walk.faults.length === 0; round++) await oneRound(walk);
    walk.over.abort();
    await feeding;
    const faults = [...walk.faults, ...(await installation.faultsWhenDone())];
    return { faults: faults.length > 0 ? [...faults, installation.output()] : [], died: walk.died };
  } finally {
    walk.over.abort();
    await installation.close();
  }
}

async function oneRound(walk: Walk): Promise<void> {
  const { installation } = walk;
  const choose = (names: readonly Checkpoint[]): Checkpoint[] => names.filter((name) => walk.options.at.includes(name));
  const first = choose(checkpoints.host).filter((name) => !lastOnes.includes(name));
  // the first worker is left alone and goes on working
  await Promise.all([
    dieAtEach(walk, installation.hosts, first),
    dieAtEach(walk, installation.workers.slice(1), choose(checkpoints.worker)),
  ]);
  const losing = new AbortController();
  await Promise.all([
    dieAtEach(walk, installation.hosts, choose(lastOnes)).finally(() => losing.abort()),
    loseWorkers(walk, losing.signal),
  ]);
  // separately, because the other roles make no progress while the API dies at every request
  await dieAtEach(walk, [installation.api], choose(checkpoints.api));
}

/** Checkpoints that this walk can reach. */
export const walked: readonly Checkpoint[] = [...checkpoints.host, ...checkpoints.worker, ...checkpoints.api];

/**
 * The roles share the checkpoints; each takes the next one. While one is on its way to its checkpoint, the others start
 * and stand by. A role that finds none left stays away until all are done: a healthy host would keep the tenant, and no
 * other host would reach its checkpoint.
 */
export async function dieAtEach(
  walk: Dying,
  roles: readonly RoleProcess[],
  names: readonly Checkpoint[],
): Promise<void> {
  if (names.length === 0) return;
  const left = [...names];
  let underWay = roles.length;
  const { api } = walk.installation;
  await Promise.all(
    roles.map(async (role) => {
      await dieAtSome(walk, role, left);
      underWay -= 1;
      if (role === api) await comeAndGo(walk.installation, role, () => underWay === 0);
    }),
  );
  await Promise.all(roles.map((role) => begin(walk.installation, role)));
}

async function dieAtSome(walk: Dying, role: RoleProcess, left: Checkpoint[]): Promise<void> {
  for (let name = left.shift(); name !== undefined; name = left.shift()) {
    const passage = onceOnly.has(name) ? 1 : 1 + walk.dice.upTo(walk.options.passages);
    await begin(walk.installation, role, { MILLRACE_CHECKPOINT: `${name}:${passage}` });
    const ending = await waitForEnding(role.ending());
    if (ending?.signal === 'SIGKILL') walk.died.add(name);
    else walk.faults.push(`${role.name} did not die at ${name}:${passage} (${JSON.stringify(ending)})`);
  }
  const { pid } = role;
  await role.kill();
  await bury(walk.installation, role, pid);
}

/** Restarts and kills the API in turns: the others need executions that it launches, and those that they take over from it. */
async function comeAndGo(installation: ChaosInstallation, role: RoleProcess, isOver: () => boolean): Promise<void> {
  while (!isOver()) {
    await begin(installation, role);
    await sleep(presentMs);
    await role.kill();
    await sleep(absentMs);
  }
}

/** Starts the next process, after the former one was reported as lost. */
async function begin(installation: ChaosInstallation, role: RoleProcess, more: Readonly<Record<string, string>> = {}) {
  const { pid } = role;
  await role.restart(more);
  await bury(installation, role, pid);
}

/** Others take over at once what a host or a courier had. */
async function bury(installation: ChaosInstallation, role: RoleProcess, pid: number): Promise<void> {
  if (installation.hosts.includes(role)) await installation.buryHost(pid);
  if (installation.couriers.includes(role)) await installation.buryCourier(pid);
}

async function waitForEnding(ending: Promise<Ending>): Promise<Ending | undefined> {
  const waited = new AbortController();
  const ended = await Promise.race([ending, sleep(maxPassageMs, undefined, { signal: waited.signal })]);
  waited.abort();
  return ended;
}

/** Kills all workers whenever one of them holds a run. */
async function loseWorkers({ installation }: Walk, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await until(
      'a worker holds a run',
      async () => signal.aborted || (await installation.runsHeld()) > 0 || undefined,
      maxPassageMs,
    );
    await Promise.all(installation.workers.map((worker) => worker.restart()));
    await sleep(500);
  }
}

/** Creates every kind of work, over and over. Ends with no job paused. */
async function feed({ installation, over, dice }: Walk): Promise<void> {
  let liveId = '';
  for (let n = 0, liveUntilMs = 0; !over.signal.aborted; n++) {
    if (Date.now() > liveUntilMs) {
      if (liveId !== '') await installation.pause(liveId, false);
      const firstMs = secondAfter(Date.now());
      liveId = await installation.apply(fan(`live ${n}`, { firstMs, count: liveInstants, limited: true }));
      liveUntilMs = firstMs + liveInstants * everyMs;
    }
    await installation.pause(liveId, n % 4 < 2);
    await installation.apply(pastFan(n, dice));
    if (n % 3 === 0) await backfill(installation, n);
    // limit the backlog, so that a slow machine also finishes soon after the walk
    while (!over.signal.aborted && (await installation.runsUnderWay()) > maxUnderWay) await sleep(50);
  }
  await installation.pause(liveId, false);
}

const liveInstants = 5;
const pastInstants = 2;
const maxUnderWay = 40;

function secondAfter(ms: number): number {
  return Math.ceil(ms / everyMs) * everyMs;
}

/** First instant of the n-th job of the past. No two jobs have instants in common. */
function pastOf(n: number): number {
  return Date.UTC(2026, 0, 1) + n * pastInstants * everyMs;
}

function pastFan(n: number, dice: Dice): Fan {
  const catchup = dice.next(['earliest', 'latest', 'random', 'last'] as const);
  return fan(`past ${n}`, { firstMs: pastOf(n), count: pastInstants, catchup });
}

/** Applies a job whose instants only a backfill fires, and backfills it. */
async function backfill(installation: ChaosInstallation, n: number): Promise<void> {
  const job = fan(`backfilled ${n}`, { firstMs: pastOf(n), count: pastInstants, catchup: 'none' });
  const [first = 0, last = first] = job.instants;
  const body = { first: new Date(first).toISOString(), last: new Date(last).toISOString(), name: 'again' };
  await installation.call('POST /api/jobs/{id}/backfill', { params: { id: await installation.apply(job) }, body });
}
