/** The execution that is measured: three hosted steps, each returns what it is given. */
import type { Turn } from '../tally.ts';

export const inFlight = 256;

export const three = {
  flow: 'three',
  steps: ['first', 'second', 'third'].map((task) => ({ task, with: '$(f.order)', result: 'f.order' })),
};

const echo = async (value: unknown): Promise<unknown> => value;
export const functions = { first: echo, second: echo, third: echo };

/** About 200 bytes. */
export const input = {
  order: { id: 'o-4711', customer: 'anna', items: ['plate', 'cup', 'bowl'], total: 127.5 },
  note: 'x'.repeat(100),
};

/** Keeps `inFlight` executions under way, and counts those that have ended. */
export async function closedLoop(run: () => Promise<unknown>, ms: number): Promise<Turn> {
  const startedMs = performance.now();
  let runs = 0;
  const work = async (): Promise<void> => {
    while (performance.now() < startedMs + ms) {
      await run();
      runs += 1;
    }
  };
  await Promise.all(Array.from({ length: inFlight }, work));
  return { runs, perSecond: (runs / (performance.now() - startedMs)) * 1_000 };
}
