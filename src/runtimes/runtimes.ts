/** The table of runtimes that a worker has. What is in it is what the worker claims. */
import type { RuntimeName } from '../contract/wire.ts';
import type { Log } from '../kernel/log.ts';
import { packageFile } from '../kernel/process/package-files.ts';
import type { Runtime } from './contract.ts';
import { dockerMissing } from './docker/docker.ts';
import { functionRuntime, type TaskFunctions } from './function/function.ts';
import { functionProcesses } from './function/processes.ts';
import { none } from './none.ts';
import { processRuntime } from './process/process.ts';
import type { TaskUsers } from './users/task-users.ts';

export type RuntimeTable = ReadonlyMap<RuntimeName, Runtime>;

export interface RuntimeOptions {
  /** Which to have; those that cannot be had here are left out. */
  readonly names: readonly RuntimeName[];
  /** Functions of the program that the worker is part of, or a file of them. */
  readonly functions: TaskFunctions | string;
  /** The worker's own environment, of which a process inherits a few variables. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Whom tasks run as; without it, as the worker itself does. */
  readonly users?: TaskUsers | undefined;
  readonly log?: Log | undefined;
}

const program = packageFile('dist', 'function-host.js');

const makers: Record<RuntimeName, (options: RuntimeOptions) => Runtime | undefined> = {
  none: () => none,
  function: ({ functions, environment, users, log }) => {
    if (typeof functions === 'string') return functionProcesses({ file: functions, program, environment, users, log });
    // without a single function its runs are better left to a worker that has some
    return Object.keys(functions).length > 0 ? functionRuntime({ functions }) : undefined;
  },
  process: ({ environment, users, log }) => processRuntime({ environment, users, log }),
  docker: () => dockerMissing,
  kubernetes: () => undefined,
};

export function makeRuntimes(options: RuntimeOptions): RuntimeTable {
  const table = new Map<RuntimeName, Runtime>();
  for (const name of options.names) {
    const runtime = makers[name](options);
    if (runtime) table.set(name, runtime);
  }
  return table;
}
