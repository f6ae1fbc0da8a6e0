/** The options of a worker, and their defaults. */
import { hostname } from 'node:os';
import type { Log } from '../kernel/log.ts';
import { systemTime, type Time } from '../kernel/time.ts';
import type { Runtime, WorkerIdentity } from '../runtimes/contract.ts';
import { type Carry, overNetwork } from './carrier.ts';
import { type RuntimeTimes, runtimeTimes } from './runtimes/runtime-watch.ts';

export interface WorkerOptions {
  /** Stays over restarts where it can be kept, so that after one the runs return at once. */
  readonly id: string;
  /** Greater than that of any earlier life under the same id; without a lasting id the time will do. */
  readonly incarnation?: (() => number) | undefined;
  /** The server has refused the id; the worker goes on under this one. */
  readonly onNewIdentity?: ((identity: { id: string; incarnation: number }) => void) | undefined;
  readonly name: string;
  readonly version: string;
  /** The API's address, and a key of the role `worker`. */
  readonly url: string;
  readonly key: string;
  /** Makes its runtimes, once for each life. The function tells who the worker is now: the server may refuse its id. */
  readonly runtimes: (worker: () => WorkerIdentity) => readonly Runtime[];
  readonly runtimeTimes?: RuntimeTimes | undefined;
  readonly log: Log;
  /** The network, unless the API is in the same process. */
  readonly carry?: Carry | undefined;
  /** The API's address as tasks are told it, where it is another. */
  readonly taskUrl?: string | undefined;
  readonly addr?: string | undefined;
  readonly queues?: readonly string[] | undefined;
  /** Places: how many runs at once. */
  readonly maxTasks?: number | undefined;
  /** How long running tasks may go on after `stop`. */
  readonly drainMs?: number | undefined;
  readonly heartbeatMs?: number | undefined;
  /** How long one poll for work waits. */
  readonly pollMs?: number | undefined;
  /** What is kept of one run's output, beside its end. */
  readonly logLimitBytes?: number | undefined;
  readonly time?: Time | undefined;
}

/** The same with every default filled in. */
export type WorkerSettings = { readonly [K in keyof WorkerOptions]-?: NonNullable<WorkerOptions[K]> };

export function settingsOf(options: WorkerOptions): WorkerSettings {
  return {
    ...options,
    runtimeTimes: options.runtimeTimes ?? runtimeTimes,
    carry: options.carry ?? overNetwork(),
    taskUrl: options.taskUrl ?? options.url,
    incarnation: options.incarnation ?? (() => (options.time ?? systemTime).now()),
    onNewIdentity: options.onNewIdentity ?? (() => {}),
    addr: options.addr ?? hostname(),
    queues: options.queues ?? ['default'],
    maxTasks: options.maxTasks ?? 8,
    drainMs: options.drainMs ?? 5_000,
    heartbeatMs: options.heartbeatMs ?? 5_000,
    pollMs: options.pollMs ?? 10_000,
    logLimitBytes: options.logLimitBytes ?? 10 * 1024 * 1024,
    time: options.time ?? systemTime,
  };
}
