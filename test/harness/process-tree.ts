/** A process and its descendants, from /proc; for killing all of them at once, as a power cut would. */
import { readdirSync } from 'node:fs';
import { readProcessStat } from '../../src/kernel/process/process-stat.ts';

function parents(): Map<number, number | undefined> {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return new Map(pids.map((pid) => [Number(pid), readProcessStat(Number(pid))?.parent]));
}

/** The process ids of the tree; the root comes first. */
export function descendants(root: number): number[] {
  const parentOf = parents();
  const found = [root];
  for (const pid of found) {
    for (const [child, parent] of parentOf) if (parent === pid && !found.includes(child)) found.push(child);
  }
  return found;
}

/** Kills the whole tree with kill -9, and `others` that have left it. */
export function killTree(root: number, others: readonly number[] = []): void {
  for (const pid of [...descendants(root), ...others]) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // already gone
    }
  }
}
