/**
 * The command line: `runCli` takes arguments and gives an exit code; `makeProgram` is the tree of commands behind it.
 *
 * Thin: a command reads its flags, calls the server, and shows the answer. Nothing here reads `process`, hears signals or
 * exits; that is `main.ts`'s.
 */
import { Command } from 'commander';
import { addBackfillCommands } from './commands/backfills/backfill-commands.ts';
import { addDocumentCommands } from './commands/jobs/document-commands.ts';
import { addEngineCommands } from './commands/engines/engine-commands.ts';
import type { Fault } from '../errors.ts';
import { type Ending, endingOf, exitCodeHelp, exitCodes } from './session/exit.ts';
import { filled } from './session/flags.ts';
import { addInstantCommands } from './commands/runs/instant-commands.ts';
import type { Io, Sink } from './session/io.ts';
import { addJobCommands } from './commands/jobs/job-commands.ts';
import { makePaint } from './print/paint.ts';
import { addPoolCommands } from './commands/jobs/pool-commands.ts';
import { addPreview } from './commands/jobs/preview.ts';
import { addProjectCommands } from './commands/jobs/project-commands.ts';
import { addRoleCommands, type RoleCommands } from './commands/server/role-commands.ts';
import { addRunCommands } from './commands/runs/run-commands.ts';
import { addRun } from './commands/runs/run-job.ts';
import { addServerCommands } from './commands/server/server-commands.ts';
import { addStashCommands } from './commands/jobs/stash-commands.ts';
import { addTenantCommands } from './commands/tenants/tenant-commands.ts';
import { addSlots } from './commands/tenants/tenant-views.ts';
import { addWhy } from './commands/runs/why.ts';
import { oneLine } from './print/width.ts';
import { packageVersion } from '../kernel/process/package-files.ts';

const epilogue = `
A first walk:
  millrace up                                          # in one terminal
  millrace apply -f hello.yaml --create-project        # in another
  millrace run PROJECT/JOB --wait
  millrace runs
  millrace logs RUN

Which server, which key:
  --url or MILLRACE_URL, with the key in MILLRACE_KEY; else what \`millrace up\` left in its home: --home, MILLRACE_HOME,
  or the nearest .millrace folder from here upwards.

Output:
  The answer is on stdout, everything else on stderr. --json gives one JSON value, or JSON lines for what is followed.

${exitCodeHelp}

\`millrace help COMMAND\` says more about each, with examples.`;

/** Parts of the help, in order. */
const groups: readonly (readonly [heading: string, add: (program: Command, roles: RoleCommands, io: Io) => void])[] = [
  ['Millrace itself:', (program, roles, io) => addRoleCommands(program, roles, io)],
  ['Job files:', (program, _, io) => addDocumentCommands(program, io)],
  [
    'Jobs and runs:',
    (program, _, io) => {
      addJobCommands(program, io);
      addRun(program, io);
      addPreview(program, io);
      addInstantCommands(program, io);
      addRunCommands(program, io);
      addBackfillCommands(program, io);
      addPoolCommands(program, io);
      addWhy(program, io);
    },
  ],
  [
    'Projects:',
    (program, _, io) => {
      addProjectCommands(program, io);
      addStashCommands(program, io);
    },
  ],
  ['The server:', (program, _, io) => addServerCommands(program, io)],
  [
    'Tenants and engines:',
    (program, _, io) => {
      addTenantCommands(program, io);
      addSlots(program, io);
      addEngineCommands(program, io);
    },
  ],
];

export function makeProgram(roles: RoleCommands, io: Io): Command {
  const program = new Command('millrace')
    .description('Millrace decides when work runs, where it runs, and who hears about it.')
    .version(packageVersion, '-V, --version', 'print the version')
    .helpOption('-h, --help', 'explain the command')
    .helpCommand('help [command]', 'explain a command')
    .exitOverride()
    .configureOutput({
      writeOut: (text) => void io.stdout.write(text),
      writeErr: (text) => void io.stderr.write(text),
      getOutHelpWidth: () => helpWidth(io.stdout),
      getErrHelpWidth: () => helpWidth(io.stderr),
      getOutHasColors: () => false,
      getErrHasColors: () => false,
    })
    .configureHelp({ showGlobalOptions: true })
    .option('--json', 'answer in JSON')
    .option('--url <url>', 'the server (MILLRACE_URL)')
    .option('--tenant <name>', 'the tenant (MILLRACE_TENANT, default)', filled)
    .option('--home <folder>', 'the home that `millrace up` uses (MILLRACE_HOME, ./.millrace)')
    .addHelpText('after', epilogue);
  for (const [heading, add] of groups) add(program.commandsGroup(heading), roles, io);
  return program;
}

const widestHelp = 120;

function helpWidth(sink: Sink): number {
  return Math.min(widestHelp, sink.isTTY === true ? (sink.columns ?? widestHelp) : widestHelp);
}

/** Runs one command line (without `node` and the script's name) and gives the exit code. Never throws. */
export async function runCli(argv: readonly string[], roles: RoleCommands, io: Io): Promise<number> {
  const broken = breaksOf(io);
  const signal = io.signal ? AbortSignal.any([io.signal, broken]) : broken;
  const ending = await makeProgram(roles, { ...io, signal })
    .parseAsync(argv, { from: 'user' })
    .then((): Ending => ({ exitCode: exitCodes.ok }), endingOf);
  await flushed(io.stdout);
  if (broken.aborted && isBrokenPipe(broken.reason)) return isVerdict(ending) ? ending.exitCode : exitCodes.ok;
  if (io.signal?.aborted && ending.exitCode !== exitCodes.ok) return exitCodes.interrupted;
  const told = broken.aborted ? endingOf(broken.reason) : ending;
  printEnding(io, told, argv.includes('--json'));
  return told.exitCode;
}

/** Aborts when the answer can no longer be written. The listeners stay: a late error must still find one. */
function breaksOf(io: Io): AbortSignal {
  const broken = new AbortController();
  io.stdout.on('error', (error: unknown) => broken.abort(error));
  io.stderr.on('error', () => {});
  return broken.signal;
}

/** Returns when all that was written is out, or never will be. What went wrong on the way has been told by then. */
async function flushed(sink: Sink): Promise<void> {
  await new Promise<void>((resolve) => void sink.write('', () => resolve()));
  await new Promise<void>((resolve) => void setImmediate(resolve));
}

/** A command that has said all it had to say keeps its exit code; one that was cut short has not failed. */
function isVerdict({ message }: Ending): boolean {
  return message === undefined;
}

/** The reader of our output may leave (`| head`): then there is nothing more to say. */
function isBrokenPipe(error: unknown): boolean {
  return error instanceof Error && Reflect.get(error, 'code') === 'EPIPE';
}

function printEnding(io: Io, ending: Ending, json: boolean): void {
  if (ending.message === undefined) return;
  if (json && ending.problem !== undefined) {
    io.stderr.write(`${JSON.stringify(ending.problem)}\n`);
    return;
  }
  const paint = makePaint(io.stderr, io.env);
  const { heading, faults } = tidied(ending.message, ending);
  io.stderr.write(`${paint('red', 'error:')} ${heading}\n`);
  for (const { path, message } of faults)
    io.stderr.write(`  ${oneLine(path === '' ? message : `${path}: ${message}`)}\n`);
}

/** Nothing twice: a detail that only strings the faults together gives way to them, one that says more stands for them. */
function tidied(detail: string, { faults = [], problem }: Ending): { heading: string; faults: readonly Fault[] } {
  const rest = faults.reduce(
    (text, { path, message }) => text.replace(`${path}: ${message}`, '').replace(message, ''),
    detail,
  );
  if (problem?.title !== undefined && rest !== detail && !/[\p{L}\p{N}]/u.test(rest))
    return { heading: problem.title, faults };
  return { heading: detail, faults: faults.filter(({ message }) => !detail.includes(message)) };
}
