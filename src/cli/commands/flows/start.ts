/** `millrace flow start`: launches an execution and, with `--wait`, follows it to its end. */
import type { Command } from 'commander';
import { z } from 'zod';
import { Ended, exitCodes } from '../../session/exit.ts';
import { examples, integer, requireText } from '../../session/flags.ts';
import type { Io } from '../../session/io.ts';
import { jsonSource, readJsonFlag } from '../../session/json-value.ts';
import type { Server } from '../../session/server.ts';
import { type Session, verb } from '../../session/session.ts';
import { byArgument } from '../../session/arguments.ts';
import { flowArgument } from './definition-commands.ts';
import { type Execution, repairLines } from './execution.ts';
import { followExecution } from './follow-execution.ts';

const flags = z.object({
  input: z.string().optional(),
  key: z.string().optional(),
  flowVersion: z.int().optional(),
  wait: z.boolean().default(false),
});
const maxVersion = 2 ** 31 - 1;

export function addStart(flow: Command, io: Io): void {
  const start = flow
    .command('start')
    .description('Start an execution of a flow. Prints its id, or with --wait its result.')
    .argument(...flowArgument)
    .option('--input <json>', `the input: ${jsonSource}`)
    .option('--key <key>', 'your own name for the execution: a second start with it starts nothing', requireText)
    .option('--flow-version <n>', 'another version than the newest', integer(1, maxVersion))
    .option(
      '--wait',
      'follow it until it ends, and print its result; exits with 1 unless it is done, also if it needs repair',
    )
    .action(verb(io, flags, startFlow));
  examples(start, [
    [`millrace flow start expense --input '{"id": "e1", "amount": 12}'`, 'prints the id'],
    ['millrace flow start expense --input @e1.json --key e1', 'at most once for this key'],
    ['millrace flow start export --wait && echo fine', 'in a script'],
  ]);
}

async function startFlow(
  session: Session,
  [name = '']: readonly string[],
  options: z.output<typeof flags>,
): Promise<void> {
  const { out } = session;
  const input = options.input === undefined ? {} : await readJsonFlag(session.io, '--input', options.input);
  const server = await session.connect();
  const body = { flow: name, input, version: options.flowVersion, key: options.key };
  const names = {
    'body.flow': 'the flow',
    'body.input': '--input',
    'body.key': '--key',
    'body.version': '--flow-version',
  };
  const started = await byArgument(server.tenant('POST /api/executions', { body }), names);
  if (!started.created) out.note(`the execution with the key ${options.key} exists already`);
  if (started.detail !== undefined) out.note(started.detail);
  if (options.wait) return waitForResult(session, server, started.id);
  out.answer(started, () => out.line(started.id));
}

async function waitForResult(session: Session, server: Server, id: string): Promise<void> {
  const { out, io } = session;
  if (io.stderr.isTTY !== true) out.note(`execution ${id}`);
  const execution = await followExecution(session, server, { id, sink: io.stderr, stopsAtIncident: true });
  const { flow, version, status, result, error, incidents } = execution;
  out.answer({ id, flow, version, status, result, error, incidents }, () => {
    if (status === 'done') out.line(JSON.stringify(result ?? null, null, 2));
  });
  if (status === 'done') return;
  if (io.stderr.isTTY !== true) describeEnd(session, execution);
  throw new Ended(exitCodes.failed);
}

function describeEnd({ out }: Session, execution: Execution): void {
  const { status, error } = execution;
  out.note(error === null ? status : `${status}: ${error.code}: ${error.message}`);
  const plain = { ...out, paint: (_: string, text: string) => text };
  for (const line of repairLines(execution, plain, Date.now())) out.note(line);
}
