/**
 * The machine's processes, as Linux lists them under /proc; other systems have no such list. Reading it takes time for every
 * process, so concurrent callers share one read, which begins after all of them have called. It is read synchronously in slices:
 * several times as fast as through threads, without blocking the event loop for long.
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

/** The living processes. A zombie does not count (PID 1 of many containers does not wait for its children). */
export function livingProcesses(): Promise<readonly ProcessEntry[]> {
  next ??= (underWay ?? Promise.resolve()).then(() => {
    const reading = inSlices(readEntry);
    next = undefined;
    underWay = reading;
    return reading;
  });
  return next;
}

/** Processes whose initial environment contains `NAME=value`, as far as it may be read. */
export function processesWith(variable: string): Promise<number[]> {
  const wanted = Buffer.from(`${variable}\0`);
  return inSlices((pid) => {
    const environment = read(`/proc/${pid}/environ`);
    return environment !== undefined && holds(environment, wanted) ? Number(pid) : undefined;
  });
}

/** The users of this range, both ends included, that have a process. A process that forks meanwhile may be missed. */
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

async function inSlices<T>(inspect: (pid: string) => T | undefined): Promise<T[]> {
  const found: T[] = [];
  for (const [i, pid] of processIds().entries()) {
    if (i % sliceSize === sliceSize - 1) await turn();
    const value = inspect(pid);
    if (value !== undefined) found.push(value);
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

/** Undefined if the process has ended, or belongs to another user. */
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

/** At the beginning, or after the end of another variable. */
function holds(environment: Buffer, wanted: Buffer): boolean {
  for (let at = environment.indexOf(wanted); at >= 0; at = environment.indexOf(wanted, at + 1)) {
    if (at === 0 || environment[at - 1] === 0) return true;
  }
  return false;
}
