/**
 * The processes of one task: the group of its main process, which is signalled as a whole, and those that left it. On Linux
 * these are found by the session that they are still in, or by the mark in their environment. A process that left the session
 * and cleared its environment, or changed its user, cannot be found.
 */
import { writeFileSync } from 'node:fs';
import { pause } from '../../kernel/service.ts';
import { livingProcesses, processesWith } from './process-table.ts';

/** The variable that marks every process of one hand-out of a run. */
export const markVariable = 'MILLRACE_HANDOUT';

/** Rounds of SIGKILL before giving up on a process that keeps forking. */
const maxRounds = 20;

export class TaskProcesses {
  /** The id of the main process, of its group and of its session. */
  readonly leader: number;
  readonly #mark: string;

  constructor(leader: number, mark: string) {
    this.leader = leader;
    this.#mark = mark;
  }

  /**
   * After the main process has ended: ends the rest of its group. A process that left the session outlives the run, unless the
   * task had a user of its own.
   */
  async endRest(patienceMs: number): Promise<void> {
    if (!this.#terminate()) return;
    await this.#goneWithin(patienceMs, new Set());
    signalGroup(this.leader, 'SIGKILL');
  }

  /** Ends all processes: SIGTERM, and SIGKILL after the patience. */
  async kill(patienceMs: number): Promise<void> {
    const askedAt = performance.now();
    this.#terminate();
    const strays = await this.#strays();
    for (const pid of strays) terminate(pid);
    await this.#goneWithin(patienceMs - (performance.now() - askedAt), strays);
    signalGroup(this.leader, 'SIGKILL');
    await this.#killStrays();
  }

  /** Sends SIGTERM to the group. Returns whether it has a process. A stopped process gets the signal only when it continues. */
  #terminate(): boolean {
    return signalGroup(this.leader, 'SIGTERM') && signalGroup(this.leader, 'SIGCONT');
  }

  async #goneWithin(patienceMs: number, strays: ReadonlySet<number>): Promise<void> {
    const until = performance.now() + patienceMs;
    for (let waitMs = 5; await this.#isAlive(strays); waitMs = Math.min(waitMs * 1.5, 50)) {
      const leftMs = until - performance.now();
      if (leftMs <= 0) return;
      await pause(Math.min(waitMs, leftMs));
    }
  }

  async #isAlive(strays: ReadonlySet<number>): Promise<boolean> {
    const grouped = signalGroup(this.leader, 0);
    if (!grouped && strays.size === 0) return false;
    const table = await livingProcesses();
    if (table.length === 0) return grouped;
    return table.some(({ pid, group }) => group === this.leader || strays.has(pid));
  }

  /** Processes that belong to the task and are not in its group. */
  async #strays(): Promise<Set<number>> {
    const [table, marked] = await Promise.all([livingProcesses(), processesWith(`${markVariable}=${this.#mark}`)]);
    const found = new Set(marked);
    for (const { pid, group, session } of table) {
      if (group === this.leader) found.delete(pid);
      else if (session === this.leader) found.add(pid);
    }
    return found;
  }

  async #killStrays(): Promise<void> {
    for (let round = 0; round < maxRounds; round++) {
      const strays = await this.#strays();
      if (strays.size === 0) return;
      for (const pid of strays) signalOne(pid, 'SIGKILL');
    }
  }
}

/** Of 1,000: far above that of Millrace and PostgreSQL, so that a machine short of memory loses tasks first. */
const oomScore = 500;

/** Makes the task's main process and its children the first that the kernel kills if memory runs out. Linux only. */
export function preferForOom(pid: number): void {
  try {
    writeFileSync(`/proc/${pid}/oom_score_adj`, String(oomScore));
  } catch {
    // it has ended already, or this system has no such file
  }
}

function terminate(pid: number): void {
  signalOne(pid, 'SIGTERM');
  signalOne(pid, 'SIGCONT');
}

/** Returns whether the group has a process; 0 only checks. */
function signalGroup(groupId: number, signal: NodeJS.Signals | 0): boolean {
  try {
    process.kill(-groupId, signal);
    return true;
  } catch (error) {
    // EPERM: a process of the group has changed its user; only ESRCH means that the group is gone
    return error instanceof Error && Reflect.get(error, 'code') === 'EPERM';
  }
}

export function signalOne(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // it has ended already
  }
}
