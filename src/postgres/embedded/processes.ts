/**
 * Finds the processes of a cluster. A pid in a file may belong to another process by now, so they are recognized by their
 * command lines, which any user may read even in a container without the right to trace.
 *
 * Promise: only processes of this cluster are signalled.
 */
import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { pause } from '../../kernel/service.ts';
import { run } from './user.ts';

export interface Cluster {
  /** The data folder, as in the postmaster's command line. */
  readonly data: string;
  /** `cluster_name`, which PostgreSQL writes into its children's titles. */
  readonly name: string;
}

export function clusterOf(data: string): Cluster {
  return { data, name: `millrace-${createHash('sha256').update(data).digest('hex').slice(0, 16)}` };
}

const lookMs = 5;

/** A process's command line, separated by blanks. Empty if it has ended or is a zombie. */
async function commandOf(pid: number): Promise<string> {
  if (process.platform !== 'linux') return (await run('ps', ['-ww', '-o', 'command=', '-p', String(pid)])).output;
  const words = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
  return words.replaceAll('\0', ' ');
}

async function allPids(): Promise<number[]> {
  const names =
    process.platform === 'linux' ? await readdir('/proc') : (await run('ps', ['-axo', 'pid='])).output.split('\n');
  return names.map(Number).filter((pid) => pid > 0);
}

export async function isPostmaster(pid: number, cluster: Cluster): Promise<boolean> {
  return (await commandOf(pid)).includes(`/bin/postgres -D ${cluster.data} -c `);
}

async function isChild(pid: number, cluster: Cluster): Promise<boolean> {
  return (await commandOf(pid)).startsWith(`postgres: ${cluster.name}: `);
}

/** Signals the process if it is still the postmaster. Returns whether it was. */
export async function signalPostmaster(pid: number, cluster: Cluster, signal: NodeJS.Signals): Promise<boolean> {
  if (!(await isPostmaster(pid, cluster))) return false;
  return deliver(pid, signal);
}

function deliver(pid: number, signal: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, signal);
  } catch {
    return false;
  }
}

/** Returns whether it ended in time. */
export async function awaitExit(pid: number, cluster: Cluster, timeoutMs: number): Promise<boolean> {
  for (const until = Date.now() + timeoutMs; await isPostmaster(pid, cluster); ) {
    if (Date.now() >= until) return false;
    await pause(lookMs);
  }
  return true;
}

/**
 * Ends children that have outlived their postmaster. PostgreSQL refuses to start while one of them uses the shared memory. They
 * notice the end of the postmaster themselves, but not during a long computation. Nothing is lost: the next start recovers
 * from the log in any case.
 */
export async function endOrphans(cluster: Cluster): Promise<void> {
  for (;;) {
    const pids = await allPids();
    const child = await Promise.all(pids.map((pid) => isChild(pid, cluster)));
    const orphans = pids.filter((_, i) => child[i]);
    if (orphans.length === 0) return;
    for (const pid of orphans) deliver(pid, 'SIGKILL');
    await pause(lookMs);
  }
}
