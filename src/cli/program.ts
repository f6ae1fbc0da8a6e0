/**
 * The command line. `runCli` takes arguments and returns an exit code; `makeProgram` builds the tree of commands.
 *
 * A command reads its flags, calls the server, and prints the response. Only `main.ts` reads `process`, handles signals and
 * exits.
 */
import { Command } from 'commander';
import { addDeadLetterCommands } from './commands/bus/dead-letter-commands.ts';
import { addErrandCommands } from './commands/bus/errand-commands.ts';
import { addListen } from './commands/bus/listen.ts';
import { addSubscribeCommands } from './commands/bus/subscribe.ts';
import { addSubscriberCommands } from './commands/bus/subscriber-commands.ts';
import { addTopicCommands } from './commands/bus/topic-commands.ts';
import { addBackfillCommands } from './commands/backfills/backfill-commands.ts';
import { addDocumentCommands } from './commands/jobs/document-commands.ts';
import { addFlowCommands } from './commands/flows/flow-commands.ts';
import { addEngineCommands } from './commands/engines/engine-commands.ts';
import type { Fault } from '../errors.ts';
import { type Ending, endingOf, exitCodeHelp, exitCodes } from './session/exit.ts';
import { requireText } from './session/flags.ts';
import { addImportCommands } from './commands/import/import-commands.ts';
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
import { addWorkitemCommands } from './commands/workitems/workitem-commands.ts';
import { addWhy } from './commands/runs/why.ts';
import { oneLine } from './print/width.ts';
import { packageVersion } from '../kernel/process/package-files.ts';

const epilogue = `
First steps:
  millrace up                                          # in one terminal
  millrace apply -f hello.yaml --create-project        # in another
  millrace run PROJECT/JOB --wait
  millrace runs
  millrace logs RUN

Which server, which key:
  --url or MILLRACE_URL, with the key in MILLRACE_KEY; else the server of \`millrace up\` in the home: --home, MILLRACE_HOME,
  or the nearest .millrace folder in this folder or above it.

Output:
  The answer is on stdout, everything else on stderr. --json prints one JSON value, or JSON lines for a stream.

${exitCodeHelp}

\`millrace help COMMAND\` explains a command, with examples.`;

/** The groups of commands in the help, in order. */
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
    'Flows:',
    (program, _, io) => {
      addFlowCommands(program, io);
      addWorkitemCommands(program, io);
    },
  ],
  [
    'Projects:',
    (program, _, io) => {
      addProjectCommands(program, io);
      addStashCommands(program, io);
      addImportCommands(program, io);
    },
  ],
  [
    'The event bus:',
    (program, _, io) => {
      addTopicCommands(program, io);
      addListen(program, io);
      addSubscribeCommands(program, io);
      addSubscriberCommands(program, io);
      addDeadLetterCommands(program, io);
      addErrandCommands(program, io);
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
    .option('--tenant <name>', 'the tenant (MILLRACE_TENANT, default)', requireText)
    .option('--home <folder>', 'the home that `millrace up` uses (MILLRACE_HOME, ./.millrace)')
    .addHelpText('after', epilogue);
  for (const [heading, add] of groups) add(program.commandsGroup(heading), roles, io);
  return program;
}

const maxHelpColumns = 120;

function helpWidth(sink: Sink): number {
  return Math.min(maxHelpColumns, sink.isTTY === true ? (sink.columns ?? maxHelpColumns) : maxHelpColumns);
}

/** Runs one command line (without `node` and the name of the script) and returns the exit code. Never throws. */
export async function runCli(argv: readonly string[], roles: RoleCommands, io: Io): Promise<number> {
  const broken = watchForBrokenOutput(io);
  const signal = io.signal ? AbortSignal.any([io.signal, broken]) : broken;
  const ending = await makeProgram(roles, { ...io, signal })
    .parseAsync(argv, { from: 'user' })
    .then((): Ending => ({ exitCode: exitCodes.ok }), endingOf);
  await flush(io.stdout);
  if (broken.aborted && isBrokenPipe(broken.reason)) return isVerdict(ending) ? ending.exitCode : exitCodes.ok;
  if (io.signal?.aborted && ending.exitCode !== exitCodes.ok) return exitCodes.interrupted;
  const actual = broken.aborted ? endingOf(broken.reason) : ending;
  printEnding(io, actual, argv.includes('--json'));
  return actual.exitCode;
}

/** Prints the error of a role that was started without the command line, and returns the exit code. */
export function reportFailure(error: unknown, io: Io): number {
  const ending = endingOf(error);
  if (io.signal?.aborted) return exitCodes.interrupted;
  printEnding(io, ending, false);
  return ending.exitCode;
}

/** Returns a signal that aborts when stdout can no longer be written. The listeners stay, because an error may come late. */
function watchForBrokenOutput(io: Io): AbortSignal {
  const broken = new AbortController();
  io.stdout.on('error', (error: unknown) => broken.abort(error));
  io.stderr.on('error', () => {});
  return broken.signal;
}

/** Returns when all output is written, or has failed. An error of the stream has been emitted by then. */
async function flush(sink: Sink): Promise<void> {
  await new Promise<void>((resolve) => void sink.write('', () => resolve()));
  await new Promise<void>((resolve) => void setImmediate(resolve));
}

/** A command that has printed its whole answer keeps its exit code. A command that was cut short has not failed. */
function isVerdict({ message }: Ending): boolean {
  return message === undefined;
}

/** A reader such as `| head` has closed the pipe, which is not an error. */
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
  const { heading, faults } = removeRepetition(ending.message, ending);
  io.stderr.write(`${paint('red', 'error:')} ${heading}\n`);
  for (const { path, message } of faults)
    io.stderr.write(`  ${oneLine(path === '' ? message : `${path}: ${message}`)}\n`);
}

/** Avoids printing a fault twice: a detail that only joins the faults becomes the title, else faults in the detail are omitted. */
function removeRepetition(
  detail: string,
  { faults = [], problem }: Ending,
): { heading: string; faults: readonly Fault[] } {
  const rest = faults.reduce(
    (text, { path, message }) => text.replace(`${path}: ${message}`, '').replace(message, ''),
    detail,
  );
  if (problem?.title !== undefined && rest !== detail && !/[\p{L}\p{N}]/u.test(rest))
    return { heading: problem.title, faults };
  return { heading: detail, faults: faults.filter(({ message }) => !detail.includes(message)) };
}
