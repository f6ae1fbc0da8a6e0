/** Processor time and memory of processes, from /proc. On systems other than Linux all figures are 0. */
import { readdir, readFile } from 'node:fs/promises';
import { readProcessStat } from '../src/kernel/process/process-stat.ts';

interface Stat {
  readonly pid: number;
  readonly parent: number;
  /** Seconds of processor time, of the process itself and of its children that have ended. */
  readonly cpu: number;
}

const ticksPerSecond = 100;

async function stats(): Promise<Stat[]> {
  const pids = (await readdir('/proc').catch(() => [])).filter((name) => /^\d+$/.test(name)).map(Number);
  const found = await Promise.all(
    pids.map(async (pid) => {
      const text = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
      const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
      const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
      return { pid, parent: Number(fields[1]), cpu: ticks / ticksPerSecond };
    }),
  );
  return found.filter(({ cpu }) => Number.isFinite(cpu));
}

function below(root: number, all: readonly Stat[]): Stat[] {
  const found = all.filter(({ pid }) => pid === root);
  for (const above of found) found.push(...all.filter(({ parent }) => parent === above.pid));
  return found;
}

/** Seconds of processor time that each of these process trees has used. */
export async function cpuOfTrees(roots: readonly number[]): Promise<number[]> {
  const all = await stats();
  return roots.map((root) => below(root, all).reduce((sum, { cpu }) => sum + cpu, 0));
}

/** The postmaster of a backend on this machine; undefined if that process is not a backend. */
export async function postmasterOf(backend: number): Promise<number | undefined> {
  const title = await readFile(`/proc/${backend}/cmdline`, 'utf8').catch(() => '');
  return title.startsWith('postgres:') ? readProcessStat(backend)?.parent : undefined;
}

export async function pidsBelow(root: number): Promise<number[]> {
  return below(root, await stats()).map(({ pid }) => pid);
}

/** Resident memory of one process, in bytes. */
export async function residentBytes(pid: number): Promise<number> {
  const text = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(text)?.[1] ?? 0) * 1024;
}

/** Memory of these processes in bytes; shared memory counts once. */
export async function proportionalBytes(pids: readonly number[]): Promise<number> {
  const sizes = await Promise.all(
    pids.map(async (pid) => {
      const text = await readFile(`/proc/${pid}/smaps_rollup`, 'utf8').catch(() => '');
      return Number(/^Pss:\s+(\d+) kB$/m.exec(text)?.[1] ?? 0) * 1024;
    }),
  );
  return sizes.reduce((sum, size) => sum + size, 0);
}
