/** A process and everything below it, by /proc; for killing all of it at once, as a power cut would. */
import { readFileSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';

async function parents(): Promise<Map<number, number>> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number);
  const entries = await Promise.all(
    pids.map(async (pid) => {
      const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
      return [pid, Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1])] as const;
    }),
  );
  return new Map(entries);
}

/** The process itself first. */
export async function descendants(root: number): Promise<number[]> {
  const parentOf = await parents();
  const found = [root];
  for (const pid of found) {
    for (const [child, parent] of parentOf) if (parent === pid && !found.includes(child)) found.push(child);
  }
  return found;
}

/** Whether there is such a process, zombies not counted. */
export function isAlive(pid: number): boolean {
  try {
    return !/^\d+ \(.*\) [ZX]/s.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}

/** kill -9 of the whole tree, and of processes that left it but belong to it (given by pid). */
export async function killTree(root: number, others: readonly number[] = []): Promise<void> {
  for (const pid of [...(await descendants(root)), ...others]) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // already gone
    }
  }
}
