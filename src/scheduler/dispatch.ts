/**
 * Dispatch: sends hints about ready runs. A sweep sends them again every second, or every three while nothing runs, in case a wake-up was lost, and sends workers
 * the cancellations of their runs.
 */
import { checkpoint } from './checkpoints.ts';
import type { Service } from '../kernel/service.ts';
import { hintCancellations } from '../runs/claim.ts';
import { findReadyLanes } from './queries.ts';
import type { Scheduling } from './scheduling.ts';

const sweepEveryMs = 1_000;

export interface Dispatch extends Service {
  /** Whether runs were ready at the last sweep. */
  readonly ready: () => boolean;
}

export function dispatch(scheduling: Scheduling): Dispatch {
  let ready = false;
  return { ...makeService(scheduling, (found) => (ready = found)), ready: () => ready };
}

function makeService(scheduling: Scheduling, onSweep: (ready: boolean) => void): Service {
  const { ctx, db, time, work, readied, sweepMs, noteActivity, processor } = scheduling;
  let sweptMs = Number.NEGATIVE_INFINITY;
  /** Whether the bell ended the last wait, and the one before. */
  let rung = false;
  let wasRung = false;
  const offer = (lanes: readonly string[] | undefined): void => {
    noteActivity();
    checkpoint('dispatch.offer');
    ctx.hints.send('ready', lanes);
  };
  const wait = async (signal: AbortSignal): Promise<void> => {
    wasRung = rung;
    rung = await work.dispatch.wait(sweepMs(sweepEveryMs), signal);
  };
  return processor('dispatch', 'offering runs', async (signal) => {
    if (rung) {
      ctx.hints.send('events');
      offer(readied.take());
      // a sweep now would find the same runs again
      if (!wasRung) sweptMs = time.now();
    }
    // a wait that the bell did not end lasted long enough, even if the clock stands still
    if (signal.aborted || (rung && time.now() - sweptMs < sweepEveryMs)) return () => wait(signal);
    const { lanes, killed } = await findReadyLanes(db);
    if (killed) await hintCancellations(ctx);
    sweptMs = time.now();
    const ready = lanes === undefined || lanes.length > 0;
    onSweep(ready);
    if (ready) offer(lanes);
    return () => wait(signal);
  });
}
