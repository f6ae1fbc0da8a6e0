#!/usr/bin/env node
/** argv → role. The only place that hears signals and exits. */
import { readFileSync } from 'node:fs';
import type { RoleCommands } from './cli/commands/server/role-commands.ts';
import { runCli } from './cli/program.ts';
import { readConfig, secretVariables } from './config.ts';
import { eraseEnvironment } from './kernel/process/erase-environment.ts';
import { closeInheritedFiles } from './kernel/process/inherited-files.ts';
import { armCheckpoint } from './app/checkpoints.ts';
import type { HostOrder } from './app/host-order.ts';
import type { Role } from './app/role.ts';

/** Linux tells which signals we were started to ignore; hang-up is the first. */
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

/** The first asks to end; a second one insists. */
function onSignal(): void {
  asked += 1;
  if (asked > 1) process.exit(130);
  ending.abort();
}

// a Ctrl-C reaches a child of ours as well; it goes on until it is told, for what is running still needs it
process.on('SIGINT', isChild ? () => {} : onSignal);
process.on('SIGTERM', onSignal);
// under nohup a closed terminal is none of our business, and a handler would undo that
if (!ignoresHangup()) process.on('SIGHUP', onSignal);
// a promise that some code, a task's function perhaps, forgot must not take every other run with it
process.on('unhandledRejection', (reason) => {
  process.stderr.write(
    `a promise was rejected and nobody listened: ${reason instanceof Error ? reason.stack : String(reason)}\n`,
  );
});
// a child of ours hears through its channel that we are gone, however we went
if (isChild) process.on('disconnect', () => ending.abort());
/** What a host is told by the `up` above it. Heard from the first moment on, lest it comes while we still load. */
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

// loaded when needed: `millrace jobs` should not wait for a database server's code
const roles: RoleCommands = {
  up: async (options) => (await import('./app/up.ts')).runUp(roleFor(options), options),
  down: async (options) => (await import('./app/down.ts')).runDown(roleFor(options)),
  api: async (options) => (await import('./app/api-role.ts')).runApi(roleFor(options)),
  launcher: async (options) => (await import('./app/launcher-role.ts')).runLauncher(roleFor(options), options),
  host: async (options) =>
    (await import('./app/host-role.ts')).runHost(roleFor({ home: options.home }), options, order),
  worker: async (options) =>
    (await import('./app/worker-role.ts')).runWorker(roleFor({ maxTasks: options.maxTasks }), options),
};

const code = await runCli(process.argv.slice(2), roles, {
  stdout: process.stdout,
  stderr: process.stderr,
  stdin: process.stdin,
  env: process.env,
  cwd: process.cwd(),
  signal: ending.signal,
});
process.exit(code);
