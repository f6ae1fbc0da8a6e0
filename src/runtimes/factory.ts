/** How a worker gets a runtime: what it is made from, and the reason if it cannot be had. */
import type { Log } from '../kernel/log.ts';
import type { Runtime, WorkerIdentity, WorkKind } from './contract.ts';
import type { TaskFunctions } from './function/function.ts';
import type { TaskUsers } from './users/task-users.ts';

export interface RuntimeOptions {
  /** The functions of the program that the worker is part of, or a file of them. */
  readonly functions: TaskFunctions | string;
  /** The worker's own environment: settings of runtimes, and the few variables that a process inherits. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** The user accounts of tasks; without it tasks run as the worker does. */
  readonly users?: TaskUsers | undefined;
  readonly log?: Log | undefined;
  /** The worker as it is called now: a server may refuse its id, and then it takes another. */
  worker(): WorkerIdentity;
}

export interface RuntimeFactory {
  readonly serves: readonly WorkKind[];
  /** Why this worker cannot have it. Something that may change belongs into `Runtime.probe`. */
  missing?(options: Omit<RuntimeOptions, 'worker'>): string | undefined;
  make(options: RuntimeOptions): Runtime;
}
