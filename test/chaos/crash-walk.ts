/**
 * Walks the table of checkpoints: each role in turn is started so that it dies at the next one, while the others work. A
 * feeder sees to it that everything there is to do comes up again and again: catch-up by every policy,
 * retries, pauses, backfills, lost workers. Afterwards nothing may be lost or doubled (see oracle.ts).
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
  /** Dies at one of the first so many passages. */
  readonly passages: number;
  /** At these only. */
  readonly at: readonly Checkpoint[];
}

export interface Walked {
  readonly faults: readonly string[];
  /** Checkpoints at which a process died. */
  readonly died: ReadonlySet<Checkpoint>;
}

interface Walk {
  readonly town: ChaosInstallation;
  readonly options: WalkOptions;
  readonly dice: Dice;
  readonly died: Set<Checkpoint>;
  readonly faults: string[];
  /** Aborts when all have walked. */
  readonly over: AbortController;
}

/** As long as a checkpoint may take to be passed, on a busy machine. */
const passedWithinMs = 120_000;
/** These need workers that are lost. */
const lastOnes: readonly Checkpoint[] = ['leases.sweep', 'leases.swept'];
/** Passed once in a life, or once a minute. */
const onceOnly: ReadonlySet<Checkpoint> = new Set(['scheduler.locked', 'housekeeping.pass', 'housekeeping.passed']);

export async function crashWalk(options: WalkOptions): Promise<Walked> {
  const town = await ChaosInstallation.start({ hosts: 2, workers: 2, leaseMs: 3_000 });
  const walk = {
    town,
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
    const faults = [...walk.faults, ...(await town.faultsWhenDone())];
    return { faults: faults.length > 0 ? [...faults, town.output()] : [], died: walk.died };
  } finally {
    walk.over.abort();
    await town.close();
  }
}

async function oneRound(walk: Walk): Promise<void> {
  const { town } = walk;
  const chosen = (names: readonly Checkpoint[]): Checkpoint[] => names.filter((name) => walk.options.at.includes(name));
  const first = chosen(checkpoints.host).filter((name) => !lastOnes.includes(name));
  // one worker goes on working
  await Promise.all([
    dieAtEach(walk, town.hosts, first),
    dieAtEach(walk, town.workers.slice(1), chosen(checkpoints.worker)),
  ]);
  const losing = new AbortController();
  await Promise.all([
    dieAtEach(walk, town.hosts, chosen(lastOnes)).finally(() => losing.abort()),
    loseWorkers(walk, losing.signal),
  ]);
  // by itself: nobody else gets far with an API that dies at every request
  await dieAtEach(walk, [town.api], chosen(checkpoints.api));
}

/** Those that this walk knows how to bring about. */
export const walked: readonly Checkpoint[] = [...checkpoints.host, ...checkpoints.worker, ...checkpoints.api];

/**
 * Of several, each takes the next: while one is on its way the others start, and stand by. Whoever has none left stays
 * away until all are through: a host that is well keeps the tenant, and nobody else would get to its checkpoint.
 */
async function dieAtEach(walk: Walk, roles: readonly RoleProcess[], names: readonly Checkpoint[]): Promise<void> {
  if (names.length === 0) return;
  const left = [...names];
  await Promise.all(roles.map((role) => dieAtSome(walk, role, left)));
  await Promise.all(roles.map((role) => begin(walk.town, role)));
}

async function dieAtSome(walk: Walk, role: RoleProcess, left: Checkpoint[]): Promise<void> {
  for (let name = left.shift(); name !== undefined; name = left.shift()) {
    const passage = onceOnly.has(name) ? 1 : 1 + walk.dice.upTo(walk.options.passages);
    await begin(walk.town, role, { MILLRACE_CHECKPOINT: `${name}:${passage}` });
    const ending = await soon(role.ending());
    if (ending?.signal === 'SIGKILL') walk.died.add(name);
    else walk.faults.push(`${role.name} did not die at ${name}:${passage} (${JSON.stringify(ending)})`);
  }
  const { pid } = role;
  await role.away();
  if (walk.town.hosts.includes(role)) await walk.town.buryHost(pid);
}

/** Another life; where it is a host's, the tenant that it may have had is somebody else's to take. */
async function begin(town: ChaosInstallation, role: RoleProcess, more: Readonly<Record<string, string>> = {}) {
  const { pid } = role;
  await role.restart(more);
  if (town.hosts.includes(role)) await town.buryHost(pid);
}

async function soon(ending: Promise<Ending>): Promise<Ending | undefined> {
  const waited = new AbortController();
  const ended = await Promise.race([ending, sleep(passedWithinMs, undefined, { signal: waited.signal })]);
  waited.abort();
  return ended;
}

/** Kills all workers whenever one of them holds a run. */
async function loseWorkers({ town }: Walk, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await until(
      'a worker holds a run',
      async () => signal.aborted || (await town.runsHeld()) > 0 || undefined,
      passedWithinMs,
    );
    await Promise.all(town.workers.map((worker) => worker.restart()));
    await sleep(500);
  }
}

/** Brings up everything there is to do, over and over; ends with nothing paused. */
async function feed({ town, over, dice }: Walk): Promise<void> {
  let liveId = '';
  for (let n = 0, liveUntilMs = 0; !over.signal.aborted; n++) {
    if (Date.now() > liveUntilMs) {
      if (liveId !== '') await town.pause(liveId, false);
      const firstMs = secondAfter(Date.now());
      liveId = await town.apply(fan(`live ${n}`, { firstMs, count: liveInstants, limited: true }));
      liveUntilMs = firstMs + liveInstants * everyMs;
    }
    await town.pause(liveId, n % 4 < 2);
    await town.apply(pastFan(n, dice));
    if (n % 3 === 0) await backfill(town, n);
    // no more than can be done: a slow machine is to end soon after the walk as well
    while (!over.signal.aborted && (await town.runsUnderWay()) > fewUnderWay) await sleep(50);
  }
  await town.pause(liveId, false);
}

const liveInstants = 5;
const few = 2;
const fewUnderWay = 40;

function secondAfter(ms: number): number {
  return Math.ceil(ms / everyMs) * everyMs;
}

/** Long ago, and not at the same instants as any other. */
function pastOf(n: number): number {
  return Date.UTC(2026, 0, 1) + n * few * everyMs;
}

function pastFan(n: number, dice: Dice): Fan {
  const catchup = dice.next(['earliest', 'latest', 'random', 'last'] as const);
  return fan(`past ${n}`, { firstMs: pastOf(n), count: few, catchup });
}

/** Of a job whose instants nothing else would fire. */
async function backfill(town: ChaosInstallation, n: number): Promise<void> {
  const job = fan(`backfilled ${n}`, { firstMs: pastOf(n), count: few, catchup: 'none' });
  const [first = 0, last = first] = job.instants;
  const body = { first: new Date(first).toISOString(), last: new Date(last).toISOString(), name: 'again' };
  await town.call('POST /api/jobs/{id}/backfill', { params: { id: await town.apply(job) }, body });
}
