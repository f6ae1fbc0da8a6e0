/** Creates runtimes for a worker: the options, and the reason if a runtime is not available. */
import type { Log } from '../kernel/log.ts';
import type { Runtime, WorkerIdentity, WorkKind } from './contract.ts';
import type { TaskFunctions } from './function/function.ts';
import type { TaskUsers } from './users/task-users.ts';

/** Which addresses HTTP tasks may reach, beside public ones by https. */
interface HttpSettings {
  /** Default: false. */
  readonly allowHttp?: boolean | undefined;
  /** Private networks, such as `10.1.0.0/16`. */
  readonly allowCidrs?: readonly string[] | undefined;
  /** A file with certificates of further authorities. */
  readonly caFile?: string | undefined;
}

/** What executes containers, and what they may use. */
export interface ContainerSettings {
  /** Default: `docker`, the only one so far. */
  readonly engine?: 'docker' | undefined;
  /** The address of the Docker engine, the folder with its certificates, and the content of docker's `config.json`. */
  readonly host?: string | undefined;
  readonly certs?: string | undefined;
  readonly auth?: string | undefined;
  /** Networks that containers may join; the first is the default. Empty: `bridge`. */
  readonly networks?: readonly string[] | undefined;
  /** Folders and volumes that they may use. */
  readonly volumes?: readonly string[] | undefined;
}

export interface RuntimeOptions {
  /** The functions of the program that contains the worker, or the path of a file with functions. */
  readonly functions: TaskFunctions | string;
  /** The worker's own environment: settings of runtimes, and the few variables that a process inherits. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** The users that tasks run as; without it, tasks run as the user of the worker. */
  readonly users?: TaskUsers | undefined;
  readonly http?: HttpSettings | undefined;
  readonly containers?: ContainerSettings | undefined;
  readonly log?: Log | undefined;
  /** The present identity of the worker. It changes if a server refuses its id. */
  readonly worker: () => WorkerIdentity;
}

export interface RuntimeFactory {
  readonly serves: readonly WorkKind[];
  /** Why this worker can never have it. Temporary reasons belong into `Runtime.probe`. */
  missing?(options: Omit<RuntimeOptions, 'worker'>): string | undefined;
  make(options: RuntimeOptions): Runtime;
}
