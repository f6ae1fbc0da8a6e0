/**
 * The postmaster of a cluster: finds it by its pid file, waits until it is ready, ends it, and cleans up after a crash.
 *
 * Promises: readiness is read from the pid file's status line, so waiting needs neither connections nor pg_ctl, which polls
 * rarely. A pid file whose pid belongs to another process by now does not prevent a start.
 */
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { MillraceError } from '../../errors.ts';
import { pause } from '../../kernel/service.ts';
import { type Cluster, endOrphans, awaitExit, isPostmaster, signalPostmaster } from './processes.ts';
import { socketName } from './server-layout.ts';
import { listenerAt, unless } from './home-lock.ts';

/** `fast` ends sessions and writes a checkpoint; `immediate` leaves the rest to recovery at the next start. */
export type StopMode = 'fast' | 'immediate';

interface PidFile {
  readonly pid: number;
  readonly sockets: string;
  /** `starting`, `ready`, `stopping`; empty while it is being written. */
  readonly status: string;
}

const lookMs = 5;
/** Recovery after a crash replays the log since the last checkpoint, which takes minutes on slow disks. */
const longestStartMs = 600_000;
/** A `fast` stop spends most of its time on the checkpoint: each database has about three hundred files to sync. */
const graceMs = { fast: 10_000, immediate: 1_000 } as const;

async function readPidFile(data: string): Promise<PidFile | undefined> {
  const text = await readFile(join(data, 'postmaster.pid'), 'utf8').catch(unless('ENOENT', undefined));
  if (text === undefined) return undefined;
  const lines = text.split('\n');
  return { pid: Number(lines[0]), sockets: lines[4] ?? '', status: (lines[7] ?? '').trim() };
}

/** The pid of the running postmaster, if there is one. */
export async function findPostmaster(cluster: Cluster): Promise<number | undefined> {
  const file = await readPidFile(cluster.data);
  return file !== undefined && (await isPostmaster(file.pid, cluster)) ? file.pid : undefined;
}

/** True when it accepts connections, false if it has ended. */
export async function untilReady(pid: number, cluster: Cluster): Promise<boolean> {
  for (const until = Date.now() + longestStartMs; Date.now() < until; await pause(lookMs)) {
    const file = await readPidFile(cluster.data);
    if (file?.pid === pid && file.status === 'ready') return true;
    if (file?.pid === pid && file.status === 'stopping') return !(await awaitExit(pid, cluster, graceMs.fast));
    if (!(await isPostmaster(pid, cluster))) return false;
  }
  throw new MillraceError('embedded_postgres', `PostgreSQL was not ready within ${longestStartMs / 60_000} minutes`);
}

/** Ends it, more forcefully after each `fastMs`. Returns when none of its processes is left. */
export async function endPostmaster(
  pid: number,
  cluster: Cluster,
  mode: StopMode,
  fastMs: number = graceMs.fast,
): Promise<void> {
  const steps = [
    ['SIGINT', fastMs],
    ['SIGQUIT', graceMs.immediate],
    ['SIGKILL', graceMs.immediate],
  ] as const;
  for (const [signal, waitMs] of mode === 'fast' ? steps : steps.slice(1)) {
    await signalPostmaster(pid, cluster, signal);
    if (await awaitExit(pid, cluster, waitMs)) break;
  }
  if (await isPostmaster(pid, cluster)) {
    throw new MillraceError('embedded_postgres', `PostgreSQL, process ${pid}, does not end`);
  }
}

/**
 * Removes the files that a killed server has left; `findPostmaster` must have found none. PostgreSQL itself would refuse to
 * start while the pid in these files is alive, even if it belongs to another process by now.
 */
export async function clearRemains(cluster: Cluster, sockets: string): Promise<void> {
  const file = await readPidFile(cluster.data);
  if (file === undefined) return;
  await endOrphans(cluster);
  await refuseForeign(join(sockets, socketName));
  const remains = [
    join(cluster.data, 'postmaster.pid'),
    join(sockets, socketName),
    join(sockets, `${socketName}.lock`),
  ];
  await Promise.all(remains.map((path) => rm(path, { force: true })));
}

/** A server in another container may use the same folder: its processes are not visible here, but its socket answers. */
async function refuseForeign(socket: string): Promise<void> {
  const listener = await listenerAt(socket);
  if (listener.state === 'dead') return;
  throw new MillraceError('already_running', `A PostgreSQL that is no process of this machine serves ${socket}`);
}
