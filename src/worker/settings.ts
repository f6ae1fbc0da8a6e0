/** The options of a worker, and their defaults. */
import { hostname } from 'node:os';
import type { Log } from '../kernel/log.ts';
import { systemTime, type Time } from '../kernel/time.ts';
import type { Runtime, WorkerIdentity } from '../runtimes/contract.ts';
import { type Carry, overNetwork } from './transport.ts';
import { type RuntimeTimes, runtimeTimes } from './runtimes/runtime-watch.ts';

export interface WorkerOptions {
  /** Stays over restarts if it can be stored, so that the runs return at once after a restart. */
  readonly id: string;
  /** Greater than that of any earlier incarnation of the same id; without a stored id the time is enough. */
  readonly incarnation?: (() => number) | undefined;
  /** Called when the server has refused the id: the worker continues under this one. */
  readonly onNewIdentity?: ((identity: { id: string; incarnation: number }) => void) | undefined;
  readonly name: string;
  readonly version: string;
  /** The API's address, and a key of the role `worker`. */
  readonly url: string;
  readonly key: string;
  /** Creates its runtimes, once per incarnation. The function returns the present identity, because the server may refuse an id. */
  readonly runtimes: (worker: () => WorkerIdentity) => readonly Runtime[];
  readonly runtimeTimes?: RuntimeTimes | undefined;
  readonly log: Log;
  /** Default: the network. Under `up`, the API is in the same process. */
  readonly carry?: Carry | undefined;
  /** The API's address for tasks, if it is another one. */
  readonly taskUrl?: string | undefined;
  readonly addr?: string | undefined;
  readonly queues?: readonly string[] | undefined;
  /** The number of places: runs at once. */
  readonly maxTasks?: number | undefined;
  /** How long running tasks may continue after `stop`. */
  readonly drainMs?: number | undefined;
  readonly heartbeatMs?: number | undefined;
  /** How long one poll for work waits. */
  readonly pollMs?: number | undefined;
  /** The limit of one run's output; its end is kept as well. */
  readonly logLimitBytes?: number | undefined;
  readonly time?: Time | undefined;
}

/** The options with all defaults. */
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
