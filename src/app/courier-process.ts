/**
 * The courier as a child process of `up`. It is started when the first subscriber exists anywhere, because it takes memory that
 * an installation without an event bus can do without. It is restarted with a growing pause, and ends with `up`: through its
 * channel it also notices a kill -9.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { hasSubscribers, markCourierLost } from '../control/courier-queries.ts';
import { type Backoff, delayMs } from '../kernel/backoff.ts';
import type { Log } from '../kernel/log.ts';
import { warnThrottled } from '../kernel/log-throttle.ts';
import { machine } from '../kernel/process/machine.ts';
import { leftUntil, loop, pause, type Service } from '../kernel/service.ts';
import type { Db } from '../kernel/sql.ts';
import { endChild, sendOrder } from './child-hosts.ts';
import type { HostOrder } from './host-order.ts';
import type { HostProcessOptions } from './host-processes.ts';

export interface CourierProcessOptions extends Pick<HostProcessOptions, 'main' | 'env'> {
  readonly control: Db;
  readonly order: HostOrder;
  readonly log: Log;
}

const askEveryMs = 1_000;
const restart: Backoff = { firstMs: 500, capMs: 30_000, jitter: 0.5 };
/** A courier that has run for this long was well; its next failure counts as the first. */
const wellMs = 60_000;
/** Its services have 3 s to give back their errands. */
const killAfterMs = 4_500;
const killBeforeDeadlineMs = 100;

export function courierProcess(options: CourierProcessOptions): Service {
  const { control, log } = options;
  let child: ChildProcess | undefined;
  let isNeeded = false;
  let failures = 0;
  const pass = async (signal: AbortSignal): Promise<void> => {
    isNeeded ||= await hasSubscribers(control);
    if (!isNeeded) return pause(askEveryMs, signal);
    if (signal.aborted) return;
    const startedMs = performance.now();
    child = startCourier(options);
    const how = await endOf(child, signal);
    if (signal.aborted) return;
    if (child.pid !== undefined) await markCourierLost(control, { machine, pid: child.pid }).catch(() => {});
    if (performance.now() - startedMs > wellMs) failures = 0;
    log.error({ courier: child.pid, reason: how }, 'courier ended unexpectedly, starting it again');
    await pause(delayMs(restart, failures++), signal);
  };
  const looking = loop('courier', pass, warnThrottled(log, 'starting the courier failed, retrying'));
  return {
    name: 'courier',
    start: looking.start,
    async stop(deadlineMs = Number.POSITIVE_INFINITY) {
      await looking.stop();
      const killMs = Math.min(killAfterMs, leftUntil(deadlineMs - killBeforeDeadlineMs));
      if (child !== undefined) await endChild(child, killMs);
    },
  };
}

function startCourier({ main, env, order, log }: CourierProcessOptions): ChildProcess {
  const child = spawn(process.execPath, [main, 'courier'], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  child.on('error', (error) => log.debug({ err: error, courier: child.pid }, 'sending to the courier failed'));
  sendOrder(child, order);
  return child;
}

/** How the process ended; also returns when the signal aborts. */
function endOf(child: ChildProcess, signal: AbortSignal): Promise<string> {
  return new Promise((resolve) => {
    signal.addEventListener('abort', () => resolve('stopped'), { once: true });
    child.once('exit', (code, killedBy) => resolve(killedBy ?? `exit ${code}`));
    child.once('error', (error) => child.pid === undefined && resolve(error.message));
  });
}
