/**
 * How long a process keeps others waiting while something is done to it.
 *
 * A client asks without a break and notes its longest wait. On a busy machine a wait has other causes, too: so a process is
 * never held responsible for more than the processor time that it used meanwhile, nor for the slowest of several tries.
 */
import { Agent, get } from 'node:http';
import { readProcessStat } from '../../src/kernel/process/process-stat.ts';

export interface Watched {
  readonly url: string;
  readonly pid: number;
}

/** The shortest, over some tries, of the longest wait that the work caused, in milliseconds. Stops at one within `goodMs`. */
export async function blockingOf(watched: Watched, work: () => Promise<void>, goodMs: number): Promise<number> {
  let best = Number.POSITIVE_INFINITY;
  for (let tries = 0; tries < 5 && best > goodMs; tries++) {
    best = Math.min(best, await blockedOnce(watched, work));
    // no chance of the machine makes so much of so little
    if (best > 20 * goodMs) break;
  }
  return best;
}

async function blockedOnce({ url, pid }: Watched, work: () => Promise<void>): Promise<number> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  let isOver = false;
  let longestMs = 0;
  const ask = async (): Promise<void> => {
    const askedAt = performance.now();
    await answerOf(`${url}/healthz`, agent);
    longestMs = Math.max(longestMs, performance.now() - askedAt);
  };
  // the connection is open before anything is measured
  await answerOf(`${url}/healthz`, agent);
  const before = readProcessStat(pid)?.processorMs ?? 0;
  const asking = (async () => {
    while (!isOver) await ask();
  })();
  try {
    await work();
    // whatever the work has left behind is in the way of this
    await ask();
  } finally {
    isOver = true;
    await asking;
    agent.destroy();
  }
  const after = readProcessStat(pid)?.processorMs;
  if (after === undefined) throw new Error(`process ${pid} has ended`);
  return Math.min(longestMs, after - before);
}

function answerOf(url: string, agent: Agent): Promise<void> {
  return new Promise((resolve, reject) => {
    get(url, { agent }, (answer) => answer.resume().on('end', resolve).on('error', reject)).on('error', reject);
  });
}
