/**
 * A task's process group: signalled as a whole, never one process alone. What left the group by `setsid` is found by
 * the mark in its environment, on Linux, as far as it may be read.
 */
import { readdir, readFile } from 'node:fs/promises';
import { pause } from '../kernel/service.ts';

/** The variable that marks every process of one hand-out of a run. */
export const markVariable = 'MILLRACE_HANDOUT';

/** Whether there was anybody to signal; 0 only asks. */
function signalGroup(groupId: number, signal: NodeJS.Signals | 0): boolean {
  try {
    process.kill(-groupId, signal);
    return true;
  } catch (error) {
    // EPERM: somebody is there who changed user; only ESRCH says that the group is gone
    return error instanceof Error && Reflect.get(error, 'code') === 'EPERM';
  }
}

/** Asks the group to end. A stopped process hears nothing until it continues. */
export function askGroup(groupId: number): boolean {
  return signalGroup(groupId, 'SIGTERM') && signalGroup(groupId, 'SIGCONT');
}

/** Waits until the group is gone; past `patienceMs` it is killed. */
export async function endGroup(groupId: number, patienceMs: number): Promise<void> {
  const until = performance.now() + patienceMs;
  for (let waitMs = 5; await isAlive(groupId); waitMs = Math.min(waitMs * 1.5, 50)) {
    const leftMs = until - performance.now();
    if (leftMs <= 0) {
      signalGroup(groupId, 'SIGKILL');
      return;
    }
    await pause(Math.min(waitMs, leftMs));
  }
}

/** A process that has ended but was never fetched by its parent can be signalled still; PID 1 of many a container fetches none. */
async function isAlive(groupId: number): Promise<boolean> {
  if (!signalGroup(groupId, 0)) return false;
  const pids = await processIds();
  if (pids.length === 0) return true;
  for (const pid of pids) {
    const stat = await readFile(`/proc/${pid}/stat`, 'latin1').catch(() => '');
    // pid (name) state parent group …; the name may hold anything
    const [state, , group] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (Number(group) === groupId && state !== 'Z' && state !== 'X') return true;
  }
  return false;
}

/** Kills what carries the mark but left the group. */
export async function killStrays(mark: string): Promise<void> {
  const wanted = Buffer.from(`${markVariable}=${mark}`);
  for (const pid of await processIds()) {
    const environment = await readFile(`/proc/${pid}/environ`).catch(() => undefined);
    if (environment?.includes(wanted)) killOne(Number(pid));
  }
}

/** None where the machine has no such list. */
async function processIds(): Promise<string[]> {
  const names = await readdir('/proc').catch(() => []);
  return names.filter((name) => /^\d+$/.test(name));
}

function killOne(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // gone meanwhile, which is what was wanted
  }
}
