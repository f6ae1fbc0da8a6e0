/** The commands that start and stop Millrace itself. This file declares their flags; `main.ts` implements them. */
import { resolve } from 'node:path';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { z } from 'zod';
import { type WorkKind, workKinds } from '../../../runtimes/kinds.ts';
import { MillraceError } from '../../../errors.ts';
import { queueFault } from '../../../documents/name.ts';
import { readSecretFile } from '../../../kernel/process/secret-file.ts';
import { findKeyFault } from '../../../kernel/text/secret-text.ts';
import { findConnection, findHome } from '../../session/connection.ts';
import { examples, integer, collectValues, wordsOf } from '../../session/flags.ts';
import type { Io } from '../../session/io.ts';
import { noOptions, type Session, verb } from '../../session/session.ts';

/** A flag that was not given is undefined; the configuration sets it then. */
interface ApiOptions {
  readonly home?: string | undefined;
  readonly host?: string | undefined;
  readonly port?: number | undefined;
}

export interface UpOptions extends ApiOptions {
  readonly maxTasks?: number | undefined;
  /** False with `--no-worker`. */
  readonly worker: boolean;
  /** An absolute path. */
  readonly functions?: string | undefined;
}

export interface HostOptions {
  readonly home?: string | undefined;
  /** The version of the engine whose schedulers it runs; undefined: the running release. */
  readonly engine?: string | undefined;
  /** Whether a launcher started the host and stops it when it is no longer needed. */
  readonly onDemand: boolean;
}

export interface LauncherOptions {
  readonly home?: string | undefined;
  /** False with `--no-hosts`. */
  readonly hosts: boolean;
}

interface CourierOptions {
  readonly home?: string | undefined;
}

export interface ConductorOptions {
  readonly home?: string | undefined;
  /** An absolute path. */
  readonly functions?: string | undefined;
}

interface DownOptions {
  /** An absolute path, which may not exist. */
  readonly home: string;
}

export interface WorkerOptions {
  readonly url: string;
  readonly key: string | undefined;
  /** The home that named the server or holds the key. */
  readonly home?: string | undefined;
  readonly maxTasks?: number | undefined;
  readonly queues?: readonly string[] | undefined;
  readonly runtimes?: readonly WorkKind[] | undefined;
  /** An absolute path. */
  readonly functions?: string | undefined;
  readonly name?: string | undefined;
}

/** Each method returns when its role has ended. An error becomes a message and an exit code. */
export interface RoleCommands {
  up(options: UpOptions): Promise<void>;
  down(options: DownOptions): Promise<void>;
  api(options: ApiOptions): Promise<void>;
  launcher(options: LauncherOptions): Promise<void>;
  host(options: HostOptions): Promise<void>;
  courier(options: CourierOptions): Promise<void>;
  conductor(options: ConductorOptions): Promise<void>;
  worker(options: WorkerOptions): Promise<void>;
}

const maxPort = 65_535;
const maxMaxTasks = 10_000;

const apiFlags = z.object({ home: z.string().optional(), host: z.string().optional(), port: z.int().optional() });
const homeFlags = z.object({ home: z.string().optional() });
const launcherFlags = z.object({ ...homeFlags.shape, hosts: z.boolean() });
const hostFlags = z.object({
  ...homeFlags.shape,
  engine: z.string().optional(),
  onDemand: z.boolean().default(false),
});
const upFlags = z.object({
  ...apiFlags.shape,
  maxTasks: z.int().optional(),
  worker: z.boolean(),
  functions: z.string().optional(),
});
const conductorFlags = z.object({ ...homeFlags.shape, functions: z.string().optional() });
const functionsFlag = [
  '--functions <file.js>',
  'a module whose exports are the functions that tasks of flows name',
] as const;

export function addRoleCommands(program: Command, roles: RoleCommands, io: Io): void {
  const atHome = <T extends { home?: string | undefined }>(flags: T): T =>
    flags.home === undefined ? flags : { ...flags, home: resolve(io.cwd, flags.home) };
  const withFile = <T extends { functions?: string | undefined }>(flags: T): T =>
    flags.functions === undefined ? flags : { ...flags, functions: resolve(io.cwd, flags.functions) };
  const up = withAddress(program.command('up'))
    .description(
      'Start everything on this machine: database, server, scheduler, worker. Runs until Ctrl-C or `millrace down`.',
    )
    .option('--max-tasks <n>', 'how many tasks may run at once (MILLRACE_MAX_TASKS, 8)', integer(1, maxMaxTasks))
    .option('--no-worker', 'run no tasks here; other workers run them')
    .option(...functionsFlag)
    .action(verb(io, upFlags, (_, __, flags) => roles.up(withFile(atHome(flags)))));
  examples(up, [
    ['millrace up', 'http://127.0.0.1:8080, all data in ./.millrace'],
    ['millrace up --port 9000 --home /srv/millrace', 'elsewhere'],
    ['millrace up --no-worker', 'server only; see `millrace worker`'],
    ['millrace up --functions tasks.js', 'also calls these functions for flows'],
  ]);
  const down = program.command('down').description("Stop what `millrace up` started here, and the home's PostgreSQL.");
  down.action(verb(io, noOptions, async (session) => roles.down({ home: await findHome(session.place) })));
  examples(down, [['millrace down', 'finds the home as other commands do']]);
  const api = withAddress(program.command('api')).description('Serve the HTTP API and the web interface only.');
  examples(api, [['MILLRACE_DATABASE_URL=postgres://db/millrace millrace api', 'beside an existing PostgreSQL']]);
  api.action(verb(io, apiFlags, (_, __, flags) => roles.api(atHome(flags))));
  const launcher = program
    .command('launcher')
    .description(
      "Keep every tenant's scheduler running, in hosts that it starts on this machine. One is active, others stand by.",
    )
    .option('--no-hosts', 'start no hosts here; start them elsewhere with `millrace host`');
  examples(launcher, [
    ['MILLRACE_DATABASE_URL=postgres://db/millrace millrace launcher', 'beside an existing PostgreSQL'],
  ]);
  launcher.action(verb(io, launcherFlags, (_, __, flags) => roles.launcher(atHome(flags))));
  const host = program
    .command('host')
    .description(
      'Run the schedulers that the launcher assigns to it. The launcher starts hosts on its own machine by itself.',
    )
    .option('--engine <version>', 'run the schedulers of tenants at this version (that of this release)')
    .addOption(new Option('--on-demand', 'end when the launcher no longer needs it').hideHelp());
  examples(host, [
    ['MILLRACE_DATABASE_URL=postgres://db/millrace millrace host', 'on another machine than the launcher'],
  ]);
  host.action(verb(io, hostFlags, (_, __, flags) => roles.host(atHome(flags))));
  const courier = program
    .command('courier')
    .description('Deliver the events of all tenants to their subscribers. Several may run beside each other.');
  examples(courier, [
    ['MILLRACE_DATABASE_URL=postgres://db/millrace millrace courier', 'beside `millrace api` and `millrace launcher`'],
  ]);
  courier.action(verb(io, homeFlags, (_, __, flags) => roles.courier(atHome(flags))));
  const conductor = program
    .command('conductor')
    .description('Drive executions of flows, of all tenants. Several may run beside each other.')
    .option(...functionsFlag)
    .action(verb(io, conductorFlags, (_, __, flags) => roles.conductor(withFile(atHome(flags)))));
  examples(conductor, [
    [
      'MILLRACE_DATABASE_URL=postgres://db/millrace millrace conductor',
      'beside `millrace api` and `millrace launcher`',
    ],
    ['millrace conductor --functions tasks.js', 'also calls these functions for flows'],
  ]);
  addWorker(program, roles, io);
}

function withAddress(command: Command): Command {
  return command
    .option('--port <port>', 'the port to serve on (MILLRACE_PORT, 8080)', integer(0, maxPort))
    .option('--host <address>', 'the address to serve on (MILLRACE_HOST, 127.0.0.1)');
}

const workerFlags = z.object({
  keyFile: z.string().optional(),
  maxTasks: z.int().optional(),
  queue: z.array(z.string()).optional(),
  runtime: z.array(z.enum(workKinds)).optional(),
  functions: z.string().optional(),
  name: z.string().optional(),
});

function addWorker(program: Command, roles: RoleCommands, io: Io): void {
  const worker = program
    .command('worker')
    .description('Run tasks, for the server at --url or MILLRACE_URL. Its key is read from MILLRACE_KEY or --key-file.')
    .option('--key-file <file>', 'read the key from a file; other users could see a key on the command line')
    .option('--max-tasks <n>', 'how many tasks may run at once (MILLRACE_MAX_TASKS, 8)', integer(1, maxMaxTasks))
    .option('--queue <name>', 'take tasks of this queue only (default); may be given more than once', queues)
    .option(
      '--runtime <name>',
      `take tasks of this runtime (${workKinds.join(', ')}); may be given more than once`,
      runtimes,
    )
    .option('--functions <file.js>', 'a module whose exports are the functions that tasks may name')
    .option('--name <name>', 'how the worker is listed')
    .action(verb(io, workerFlags, async (session, _, flags) => roles.worker(await workerOptions(session, flags))));
  examples(worker, [
    ['MILLRACE_URL=http://main:8080 MILLRACE_KEY=… millrace worker', 'a worker on another machine'],
    ['millrace key create --name box7 --role worker', 'makes a key for it'],
    ['millrace worker --queue gpu --max-tasks 2', 'serves one queue only'],
  ]);
}

function runtimes(value: string, previous: readonly string[] = []): string[] {
  return [...previous, ...wordsOf(workKinds)(value).split(',')];
}

function queues(value: string, previous?: readonly string[]): string[] {
  const fault = queueFault(value);
  if (fault === undefined) return collectValues(value, previous);
  throw new InvalidArgumentError(`A queue's name ${fault}.`);
}

async function workerOptions(session: Session, flags: z.output<typeof workerFlags>): Promise<WorkerOptions> {
  const { url, key, home } = await findConnection(session.place);
  const inCwd = (path: string): string => resolve(session.io.cwd, path);
  return {
    url,
    home,
    key: flags.keyFile === undefined ? key : await readKeyFile(inCwd(flags.keyFile)),
    maxTasks: flags.maxTasks,
    queues: flags.queue,
    runtimes: flags.runtime,
    functions: flags.functions === undefined ? undefined : inCwd(flags.functions),
    name: flags.name,
  };
}

async function readKeyFile(path: string): Promise<string> {
  const remedy = "write the worker's key into it: `millrace key create --name … --role worker` makes one";
  const findFault = (text: string): string | undefined => findKeyFault(text, 'a key');
  const key = await readSecretFile({ path, variable: 'MILLRACE_KEY', findFault, remedy });
  if (key !== undefined) return key;
  throw new MillraceError('bad_configuration', `the key file ${path} does not exist: ${remedy}`);
}
