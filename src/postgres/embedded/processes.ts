/**
 * Which processes belong to a cluster. A pid in a file proves nothing (it may be another process's by now), so they are
 * known by their command lines, which any user may read even in a container without the right to trace.
 *
 * Promises: nothing is ever signalled that is not a process of this cluster.
 */
import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { pause } from '../../kernel/service.ts';
import { run } from './user.ts';

export interface Cluster {
  /** The data folder, as it stands on the postmaster's command line. */
  readonly data: string;
  /** `cluster_name`, which PostgreSQL writes into its children's titles. */
  readonly name: string;
}

export function clusterOf(data: string): Cluster {
  return { data, name: `millrace-${createHash('sha256').update(data).digest('hex').slice(0, 16)}` };
}

const lookMs = 5;

/** A process's command line with blanks between its words; empty when it is gone, or dead and not yet buried. */
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

/** Signals the postmaster if it still is one; whether it was. */
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

/** Whether it was gone before the time was up. */
export async function awaitExit(pid: number, cluster: Cluster, timeoutMs: number): Promise<boolean> {
  for (const until = Date.now() + timeoutMs; await isPostmaster(pid, cluster); ) {
    if (Date.now() >= until) return false;
    await pause(lookMs);
  }
  return true;
}

/**
 * Ends children that outlived their postmaster: while one is left, PostgreSQL refuses to start on their shared memory.
 * They see its death by themselves, but not in the middle of a long computation. Nothing is lost: the next start
 * recovers from the log either way.
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
