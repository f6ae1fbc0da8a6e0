/** The conductor of a process: for `up`, the role `conductor`, and `createConductor`. */
import { makeConductor } from '../../conductor/conductor.ts';
import { functionsOfFile } from '../../conductor/functions/from-file.ts';
import { type HostedFunctions, noFunctions } from '../../conductor/functions/hosted.ts';
import { engineVersion } from '../../engine/engine.ts';
import { packageFile } from '../../kernel/process/package-files.ts';
import type { Service } from '../../kernel/service.ts';
import { TaskUsers } from '../../runtimes/users/task-users.ts';
import type { Installation } from '../installation.ts';

export interface ConductorServiceOptions {
  readonly installation: Installation;
  readonly functions: HostedFunctions;
  readonly maxCalls: number;
  readonly apiUrl: () => string;
  /** Whether nothing else in the process uses the connections of tenants. */
  readonly isAlone: boolean;
  readonly signal: AbortSignal;
}

export function conductorService(options: ConductorServiceOptions): Service {
  const { installation, functions, maxCalls, apiUrl, isAlone, signal } = options;
  const { control, hub, loader, telemetry, time, log, conductors } = installation;
  const conductor = makeConductor({
    control,
    hub,
    loader,
    telemetry,
    functions,
    maxCalls,
    apiUrl,
    signal,
    maxMemoryBytes: installation.config.conductorMemoryBytes,
    closesPools: isAlone,
    version: engineVersion,
    now: () => time.now(),
    log: log.child({ part: 'conductor' }),
  });
  return {
    name: 'conductor',
    async start() {
      await conductor.start();
      conductors.attach(conductor);
    },
    quiet: () => conductor.quiet?.(),
    async stop(deadlineMs) {
      conductors.attach(undefined);
      await conductor.stop(deadlineMs);
    },
  };
}

const program = packageFile('dist', 'function-host.js');

/** The functions of a file, each call in a process of its own. Without a file there are none. */
export function fileFunctions({ config, log }: Installation, file: string | undefined): HostedFunctions {
  if (file === undefined) return noFunctions;
  const users = new TaskUsers({ wish: config.taskUser, log });
  const functions = functionsOfFile({ file, program, environment: process.env, users, log });
  return {
    get names() {
      return functions.names;
    },
    call: (call, how) => functions.call(call, how),
    service: withUsers(functions.service, users),
  };
}

const maxNames = 12;

/** For people, once they are loaded: `pay, remind, tell`. Undefined: there are none. */
export function namesOf({ names }: HostedFunctions): string | undefined {
  if (names.size === 0) return undefined;
  const shown = [...names].toSorted().slice(0, maxNames).join(', ');
  return names.size > maxNames ? `${shown} and ${names.size - maxNames} more` : shown;
}

/** The users of its processes are given back when they have ended. */
function withUsers(service: Service | undefined, users: TaskUsers): Service {
  return {
    name: 'functions',
    start: async () => service?.start(),
    async stop(deadlineMs) {
      await service?.stop(deadlineMs);
      await users.stop();
    },
  };
}
