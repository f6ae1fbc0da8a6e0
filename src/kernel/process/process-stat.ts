/**
 * Reads the file `stat` of a process or thread under /proc (proc_pid_stat(5)), and checks whether a process runs. Other systems
 * have no such file: there `readProcessStat` returns undefined, and `isProcessRunning` uses signal 0.
 *
 * Reading is synchronous, because the kernel generates the file in memory within microseconds.
 */
import { readFileSync } from 'node:fs';

export interface ProcessStat {
  /** The process has ended, but its parent has not waited for it yet (a zombie). */
  readonly hasEnded: boolean;
  readonly parent: number;
  readonly group: number;
  readonly session: number;
  /** Processor time, user and system together; the system counts in steps of 10 ms. */
  readonly processorMs: number;
  /** The start, in milliseconds since the machine started; in steps of 10 ms. */
  readonly startedMs: number;
  /** The addresses of the environment that the process was started with. Both are 0 for processes of other users. */
  readonly environment: { readonly start: number; readonly end: number };
}

/** Undefined for a process that does not exist or that this user may not see, and on systems other than Linux. */
export function readProcessStat(pid: number | 'self'): ProcessStat | undefined {
  let text: string;
  try {
    text = readFileSync(`/proc/${pid}/stat`, 'latin1');
  } catch {
    return undefined;
  }
  return parseProcessStat(text);
}

/**
 * Undefined for an empty file, which a process that ends while it is read leaves. Uses nothing outside of itself
 * (loop-watchdog).
 */
export function parseProcessStat(text: string): ProcessStat | undefined {
  const msPerClockTick = 10;
  // the second field is the program's name in parentheses, which may contain spaces and parentheses; `fields` begins with the third
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const [state = ''] = fields;
  if (state === '') return undefined;
  const numberAt = (field: number): number => Number(fields[field - 3]);
  return {
    hasEnded: state === 'Z' || state === 'X',
    parent: numberAt(4),
    group: numberAt(5),
    session: numberAt(6),
    processorMs: (numberAt(14) + numberAt(15)) * msPerClockTick,
    startedMs: numberAt(22) * msPerClockTick,
    environment: { start: numberAt(50), end: numberAt(51) },
  };
}

/** Whether the process exists. On Linux, a zombie does not count as running. */
export function isProcessRunning(pid: number): boolean {
  const stat = readProcessStat(pid);
  return stat === undefined ? canSignal(pid) : !stat.hasEnded;
}

function canSignal(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // not permitted: the process exists, but belongs to another user
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
}
