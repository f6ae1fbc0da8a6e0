/**
 * The worker: claims runs, executes them in its places, sends their output and reports their results. It uses only the API over
 * HTTP, never a database (design §7).
 *
 * As a service it may be stopped and started again. Each start is a new incarnation, so that the API can distinguish the runs of
 * an earlier one.
 */
import { makeSerial } from '../kernel/serial.ts';
import type { Service } from '../kernel/service.ts';
import { Incarnation } from './incarnation.ts';
import { settingsOf, type WorkerOptions } from './settings.ts';

export function makeWorker(options: WorkerOptions): Service {
  const settings = settingsOf(options);
  let current: Incarnation | undefined;
  /** Runs starts and stops one after the other. */
  const inTurn = makeSerial();
  return {
    name: 'worker',
    start: () =>
      inTurn(async () => {
        if (current) return;
        const incarnation = new Incarnation(settings);
        await incarnation.start();
        current = incarnation;
      }),
    quiet: () => current?.quiet(),
    stop: (deadlineMs) =>
      inTurn(async () => {
        await current?.stop(deadlineMs);
        current = undefined;
      }),
  };
}
