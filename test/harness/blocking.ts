/**
 * Measures how long a process keeps other requests waiting while it handles some work.
 *
 * A client sends requests without a pause and records its longest wait. On a busy machine a wait has other causes, too. So
 * no wait counts as longer than the processor time that the process used during it, and the best of several tries counts.
 */
import { Agent, get } from 'node:http';
import { Agent as SecureAgent, get as getSecurely } from 'node:https';
import { readProcessStat } from '../../src/kernel/process/process-stat.ts';

export interface Watched {
  readonly url: string;
  readonly pid: number;
}

/** The longest wait in milliseconds that the work caused, as the minimum of up to five tries. Stops at one within `goodMs`. */
export async function measureBlocking(watched: Watched, work: () => Promise<void>, goodMs: number): Promise<number> {
  let best = Number.POSITIVE_INFINITY;
  for (let tries = 0; tries < 5 && best > goodMs; tries++) {
    best = Math.min(best, await measureOnce(watched, work));
    // a busy machine alone does not cause a wait this long
    if (best > 20 * goodMs) break;
  }
  return best;
}

async function measureOnce({ url, pid }: Watched, work: () => Promise<void>): Promise<number> {
  const agent = makeAgent(url);
  let isOver = false;
  let longestMs = 0;
  const ask = async (): Promise<void> => {
    const [askedAt, before] = [performance.now(), processorMs(pid)];
    await answerOf(`${url}/healthz`, agent);
    const usedMs = processorMs(pid) - before + tickMs;
    longestMs = Math.max(longestMs, Math.min(performance.now() - askedAt, usedMs));
  };
  // open the connection before measuring
  await answerOf(`${url}/healthz`, agent);
  const asking = (async () => {
    while (!isOver) await ask();
  })();
  try {
    await work();
    // work that is left over delays this request
    await ask();
  } finally {
    isOver = true;
    await asking;
    agent.destroy();
  }
  return longestMs;
}

/** Linux counts processor time in ticks. */
const tickMs = 10;

function processorMs(pid: number): number {
  const used = readProcessStat(pid)?.processorMs;
  if (used === undefined) throw new Error(`process ${pid} has ended`);
  return used;
}

function makeAgent(url: string): Agent {
  const options = { keepAlive: true, maxSockets: 1 };
  return url.startsWith('https:') ? new SecureAgent({ ...options, rejectUnauthorized: false }) : new Agent(options);
}

function answerOf(url: string, agent: Agent): Promise<void> {
  const send = url.startsWith('https:') ? getSecurely : get;
  return new Promise((resolve, reject) => {
    send(url, { agent }, (answer) => answer.resume().on('end', resolve).on('error', reject)).on('error', reject);
  });
}
