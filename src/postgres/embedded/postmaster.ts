/**
 * The postmaster of a cluster: found by its pid file, watched until ready, ended, and cleared away after a crash.
 *
 * Promises: readiness is read off the pid file's status line, so waiting costs neither a connection nor pg_ctl's
 * coarse polling; a pid file whose pid now belongs to some other process does not stand in the way of a start.
 */
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { MillraceError } from '../../errors.ts';
import { pause } from '../../kernel/service.ts';
import { type Cluster, endOrphans, awaitExit, isPostmaster, signalPostmaster } from './processes.ts';
import { socketName } from './place.ts';
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
/** Recovery after a crash reads the log since the last checkpoint, on slow disks for minutes. */
const longestStartMs = 600_000;
/** Of a `fast` end most goes into its checkpoint: each database has some three hundred files to be synced. */
const graceMs = { fast: 10_000, immediate: 1_000 } as const;

async function readPidFile(data: string): Promise<PidFile | undefined> {
  const text = await readFile(join(data, 'postmaster.pid'), 'utf8').catch(unless('ENOENT', undefined));
  if (text === undefined) return undefined;
  const lines = text.split('\n');
  return { pid: Number(lines[0]), sockets: lines[4] ?? '', status: (lines[7] ?? '').trim() };
}

/** The pid of the live postmaster, if there is one. */
export async function findPostmaster(cluster: Cluster): Promise<number | undefined> {
  const file = await readPidFile(cluster.data);
  return file !== undefined && (await isPostmaster(file.pid, cluster)) ? file.pid : undefined;
}

/** True when it takes connections, false when it ended instead. */
export async function untilReady(pid: number, cluster: Cluster): Promise<boolean> {
  for (const until = Date.now() + longestStartMs; Date.now() < until; await pause(lookMs)) {
    const file = await readPidFile(cluster.data);
    if (file?.pid === pid && file.status === 'ready') return true;
    if (file?.pid === pid && file.status === 'stopping') return !(await awaitExit(pid, cluster, graceMs.fast));
    if (!(await isPostmaster(pid, cluster))) return false;
  }
  throw new MillraceError('embedded_postgres', `PostgreSQL was not ready within ${longestStartMs / 60_000} minutes`);
}

/** Ends it by ever harder means, the next one after `fastMs`; returns when nothing of it is left. */
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
 * Clears what a killed server left, given that `findPostmaster` found none. PostgreSQL itself trusts a pid that is
 * alive, whoever's it is by now, both in the data folder and beside the socket.
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

/** Another container may serve the same folder: its processes are not to be seen from here, but its socket answers. */
async function refuseForeign(socket: string): Promise<void> {
  const listener = await listenerAt(socket);
  if (listener.state === 'dead') return;
  throw new MillraceError('already_running', `A PostgreSQL that is no process of this machine serves ${socket}`);
}
