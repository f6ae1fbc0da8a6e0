#!/usr/bin/env node
/** Starts the role that argv names. The only module that handles signals and exits the process. */
import { readFileSync } from 'node:fs';
import type { HostOptions, RoleCommands } from './cli/commands/server/role-commands.ts';
import type { Io } from './cli/session/io.ts';
import { readConfig, secretVariables } from './config.ts';
import { eraseEnvironment } from './kernel/process/erase-environment.ts';
import { closeInheritedFiles } from './kernel/process/inherited-files.ts';
import { armCheckpoint } from './app/checkpoints.ts';
import type { HostOrder } from './app/host-order.ts';
import type { Role } from './app/role.ts';

/** Linux lists the signals that this process was started to ignore. SIGHUP is the first bit. */
function ignoresHangup(): boolean {
  try {
    const mask = /^SigIgn:\s*([0-9a-f]+)$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? '0';
    return (BigInt(`0x${mask}`) & 1n) === 1n;
  } catch {
    return false;
  }
}

const isChild = process.channel !== undefined;
const ending = new AbortController();
let asked = 0;

/** The first signal asks the process to end; the second one exits at once. */
function onSignal(): void {
  asked += 1;
  if (asked > 1) process.exit(130);
  ending.abort();
}

// a terminal sends Ctrl-C to child processes as well; they continue until their parent stops them, because running tasks need them
process.on('SIGINT', isChild ? () => {} : onSignal);
process.on('SIGTERM', onSignal);
// nohup makes a process ignore a closed terminal; a handler would undo that
if (!ignoresHangup()) process.on('SIGHUP', onSignal);
// an unhandled rejection, for example in a task's function, must not end all other runs
process.on('unhandledRejection', (reason) => {
  process.stderr.write(`unhandled promise rejection: ${reason instanceof Error ? reason.stack : String(reason)}\n`);
});
// a closed channel means that the parent has ended, in whatever way
if (isChild) process.on('disconnect', () => ending.abort());
/** The order that `up` sends to a host or courier. The listener is added before the role is loaded, so that the order is never missed. */
const order = isChild ? new Promise<HostOrder>((resolve) => process.once('message', resolve)) : undefined;

function roleFor(flags: {
  home?: string | undefined;
  host?: string | undefined;
  port?: number | undefined;
  maxTasks?: number | undefined;
}): Role {
  const given = {
    MILLRACE_HOME: flags.home,
    MILLRACE_HOST: flags.host,
    MILLRACE_PORT: flags.port?.toString(),
    MILLRACE_MAX_TASKS: flags.maxTasks?.toString(),
  };
  const set = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
  const say = (line: string): void => void process.stdout.write(`${line}\n`);
  const config = readConfig({ ...process.env, ...set });
  eraseEnvironment(secretVariables);
  closeInheritedFiles();
  if (config.checkpoint !== undefined) armCheckpoint(config.checkpoint);
  return { config, signal: ending.signal, say };
}

// loaded on demand: `millrace jobs` should not wait for the code of a database server
const roles: RoleCommands = {
  up: async (options) => (await import('./app/up.ts')).runUp(roleFor(options), options),
  down: async (options) => (await import('./app/down.ts')).runDown(roleFor(options)),
  api: async (options) => (await import('./app/api-role.ts')).runApi(roleFor(options)),
  launcher: async (options) => (await import('./app/launcher-role.ts')).runLauncher(roleFor(options), options),
  host: async (options) =>
    (await import('./app/host-role.ts')).runHost(roleFor({ home: options.home }), options, order),
  courier: async (options) => (await import('./app/courier-role.ts')).runCourier(roleFor(options), order),
  conductor: async (options) =>
    (await import('./app/conductor/conductor-role.ts')).runConductor(roleFor({ home: options.home }), options),
  worker: async (options) =>
    (await import('./app/worker-role.ts')).runWorker(roleFor({ maxTasks: options.maxTasks }), options),
};

/**
 * The command by which a launcher starts a host (`app/host-processes.ts`), understood without the code of the command line.
 * That saves 50 of 340 ms of processor time, which tenants wait for after the loss of their host.
 */
function hostCommand([role, flag, engine, onDemand, ...more]: readonly string[]): HostOptions | undefined {
  const isOurs = role === 'host' && flag === '--engine' && onDemand === '--on-demand' && more.length === 0;
  return isOurs ? { engine, onDemand: true } : undefined;
}

async function run(argv: readonly string[]): Promise<number> {
  const loadCli = () => import('./cli/program.ts');
  const command = hostCommand(argv);
  if (command === undefined) return (await loadCli()).runCli(argv, roles, makeIo());
  try {
    await roles.host(command);
    return 0;
  } catch (error) {
    return (await loadCli()).reportFailure(error, makeIo());
  }
}

function makeIo(): Io {
  const { stdout, stderr, stdin, env } = process;
  return { stdout, stderr, stdin, env, cwd: process.cwd(), signal: ending.signal };
}

process.exit(await run(process.argv.slice(2)));
