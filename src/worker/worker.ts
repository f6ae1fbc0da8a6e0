/**
 * The worker: claims runs, executes them in its places, ships their output and reports how they ended. It knows the API
 * over HTTP and nothing else; no database, ever (design §7).
 *
 * As a service it may be stopped and started again; each life is an incarnation of its own, so that the API can tell
 * the runs of an earlier one.
 */
import { makeSerial } from '../kernel/serial.ts';
import type { Service } from '../kernel/service.ts';
import { Incarnation } from './incarnation.ts';
import { settingsOf, type WorkerOptions } from './settings.ts';

export function makeWorker(options: WorkerOptions): Service {
  const settings = settingsOf(options);
  let current: Incarnation | undefined;
  /** One start or stop after the other. */
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
