/**
 * The machine's processes, as Linux lists them under /proc; none elsewhere. Reading it costs with every process there
 * is, so those who ask at the same time share one reading, which begins after all of them asked. It is read in slices,
 * and these without detours through threads: several times as fast, and nobody waits for long meanwhile.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { setImmediate as turn } from 'node:timers/promises';
import { readProcessStat } from '../../kernel/process/process-stat.ts';

export interface ProcessEntry {
  readonly pid: number;
  readonly group: number;
  readonly session: number;
}

let underWay: Promise<unknown> | undefined;
let next: Promise<readonly ProcessEntry[]> | undefined;

/** Those that live: one that has ended but was never fetched by its parent does not (PID 1 of many a container fetches none). */
export function livingProcesses(): Promise<readonly ProcessEntry[]> {
  next ??= (underWay ?? Promise.resolve()).then(() => {
    const reading = inSlices(readEntry);
    next = undefined;
    underWay = reading;
    return reading;
  });
  return next;
}

/** Those whose environment, as they were started with, holds `NAME=value`; as far as it may be read. */
export function processesWith(variable: string): Promise<number[]> {
  const wanted = Buffer.from(`${variable}\0`);
  return inSlices((pid) => {
    const environment = read(`/proc/${pid}/environ`);
    return environment !== undefined && holds(environment, wanted) ? Number(pid) : undefined;
  });
}

/** The users of this range, both ends included, who have a process. One that forks while we look may be missed. */
export async function usersWithProcesses({ first, last }: { first: number; last: number }): Promise<Set<number>> {
  const users = await inSlices((pid) => {
    const status = read(`/proc/${pid}/status`)?.toString('latin1') ?? '';
    return Number(/^Uid:\s+(\d+)/m.exec(status)?.[1] ?? -1);
  });
  return new Set(users.filter((uid) => uid >= first && uid <= last));
}

/** The living processes of this user. */
export function processesOf(uid: number): Promise<number[]> {
  return inSlices((pid) => {
    const status = read(`/proc/${pid}/status`)?.toString('latin1') ?? '';
    const isDead = /^State:\s+[ZX]/m.test(status);
    return !isDead && Number(/^Uid:\s+(\d+)/m.exec(status)?.[1] ?? -1) === uid ? Number(pid) : undefined;
  });
}

const sliceSize = 50;

async function inSlices<T>(look: (pid: string) => T | undefined): Promise<T[]> {
  const found: T[] = [];
  for (const [i, pid] of processIds().entries()) {
    if (i % sliceSize === sliceSize - 1) await turn();
    const seen = look(pid);
    if (seen !== undefined) found.push(seen);
  }
  return found;
}

function processIds(): string[] {
  try {
    return readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  } catch {
    return [];
  }
}

/** Nothing where the process has gone, or is somebody else's. */
function read(path: string): Buffer | undefined {
  try {
    return readFileSync(path);
  } catch {
    return undefined;
  }
}

function readEntry(pid: string): ProcessEntry | undefined {
  const stat = readProcessStat(Number(pid));
  if (stat === undefined || stat.hasEnded) return undefined;
  return { pid: Number(pid), group: stat.group, session: stat.session };
}

/** At the beginning, or behind the end of another. */
function holds(environment: Buffer, wanted: Buffer): boolean {
  for (let at = environment.indexOf(wanted); at >= 0; at = environment.indexOf(wanted, at + 1)) {
    if (at === 0 || environment[at - 1] === 0) return true;
  }
  return false;
}
