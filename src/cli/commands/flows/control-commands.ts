/** `millrace flow signal|cancel|kill|pause|resume|retry|skip`: operations on one execution, on one step, or on all of a filter. */
import type { Command } from 'commander';
import { z } from 'zod';
import { UsageError } from '../../session/exit.ts';
import { examples } from '../../session/flags.ts';
import type { Io } from '../../session/io.ts';
import { jsonSource, readJsonFlag } from '../../session/json-value.ts';
import { type Session, verb } from '../../session/session.ts';
import { checkExecutionId, executionArgument, fetchExecution } from './execution.ts';
import { filterFlags, hasFilter, readFilter, withFilter } from './execution-filter.ts';
import { findNode, nodeArgument } from './find-node.ts';
import { type Action, operateMany } from './operate-many.ts';

const manyFlags = z.object({
  ...filterFlags,
  dryRun: z.boolean().default(false),
  yes: z.boolean().default(false),
  result: z.string().optional(),
});
type Flags = z.output<typeof manyFlags>;

interface Control {
  readonly action: Action;
  readonly description: string;
  /** Whether it may be about one step. */
  readonly steps: 'never' | 'perhaps' | 'always';
  readonly examples: readonly (readonly [line: string, meaning: string])[];
}

const id = '01890a5d-…';

const controls: readonly Control[] = [
  {
    action: 'cancel',
    description:
      'Cancel an execution, or one step of it: what is under way is stopped, what was done is undone (`undo`), then on_cancel runs.',
    steps: 'perhaps',
    examples: [
      [`millrace flow cancel ${id}`, 'one execution'],
      [`millrace flow cancel ${id} approve`, 'one step; those after it go on'],
      ['millrace flow cancel --flow order --before 2030-01-31T00:00:00Z', 'many, after a question'],
    ],
  },
  {
    action: 'kill',
    description: 'End an execution, or one step of it, at once: nothing is undone, and no work is waited for.',
    steps: 'perhaps',
    examples: [[`millrace flow kill ${id}`, 'when cancelling hangs']],
  },
  {
    action: 'pause',
    description:
      'Pause an execution: messages gather and timers wait. Tasks under way go on, and their answers are kept.',
    steps: 'never',
    examples: [
      [`millrace flow pause ${id}`, 'one'],
      ['millrace flow pause --flow order --status running,waiting --yes', 'all of a flow, in a script'],
    ],
  },
  {
    action: 'resume',
    description: 'Resume a paused execution.',
    steps: 'never',
    examples: [
      [`millrace flow resume ${id}`, 'one'],
      ['millrace flow resume --flow order --status paused', 'all of a flow'],
    ],
  },
  {
    action: 'retry',
    description: 'Try a step with an incident again, now.',
    steps: 'always',
    examples: [
      [`millrace flow retry ${id}`, 'its only incident'],
      [`millrace flow retry ${id} pay`, 'the step of this name'],
      ['millrace flow retry --flow order --status incident', 'all incidents, after the cause was removed'],
    ],
  },
  {
    action: 'skip',
    description: 'End a step as if it had given this result. It may have an incident, wait, or be at work.',
    steps: 'always',
    examples: [
      [`millrace flow skip ${id}`, 'go on without its only incident'],
      [`millrace flow skip ${id} pay --result '{"id": "p1"}'`, 'with what a person has done by hand'],
    ],
  },
];

export function addControlCommands(flow: Command, io: Io): void {
  addSignal(flow, io);
  for (const control of controls) addControl(flow, io, control);
}

function addControl(flow: Command, io: Io, { action, description, steps, examples: lines }: Control): void {
  const command = flow
    .command(action)
    .description(description)
    .argument('[id]', `${executionArgument[1]}; or choose many by flags`);
  if (steps !== 'never')
    command.argument('[node]', steps === 'always' ? nodeArgument[1] : 'a live step, as `flow show` prints it');
  if (action === 'skip') command.option('--result <json>', `the result of the step (null): ${jsonSource}`);
  withFilter(command)
    .option('--dry-run', 'only count the executions of the flags')
    .option('--yes', 'do not ask')
    .action(verb(io, manyFlags, (session, args, flags) => control(session, action, args, flags)));
  examples(command, lines);
}

async function control(session: Session, action: Action, args: readonly string[], flags: Flags): Promise<void> {
  const filter = readFilter(flags);
  const [text, node] = args;
  if (text !== undefined && hasFilter(filter))
    throw new UsageError('give the id of one execution, or flags such as --flow that choose many, not both');
  if (text !== undefined) return operateOne(session, action, { id: checkExecutionId(text), node, flags });
  if (!hasFilter(filter)) throw new UsageError('give the id of an execution, or flags such as --flow that choose many');
  if (flags.result !== undefined) throw new UsageError('--result is for a step of one execution');
  return operateMany(session, { filter, action, dryRun: flags.dryRun, yes: flags.yes });
}

interface Target {
  readonly id: string;
  readonly node: string | undefined;
  readonly flags: Flags;
}

async function operateOne(session: Session, action: Action, { id, node, flags }: Target): Promise<void> {
  if (flags.dryRun) throw new UsageError('--dry-run is for executions that flags choose');
  const server = await session.connect();
  if (action === 'pause' || action === 'resume' || ((action === 'cancel' || action === 'kill') && node === undefined)) {
    const answer = await server.tenant(`POST /api/executions/{id}/${action}`, { params: { id } });
    return showOutcome(session, answer, sentences[action]);
  }
  const params = { id, node: findNode(await fetchExecution(server, id), node) };
  const result = async () => ({ result: await readJsonFlag(session.io, '--result', flags.result ?? 'null') });
  const answer =
    action === 'skip'
      ? await server.tenant('POST /api/executions/{id}/nodes/{node}/skip', { params, body: await result() })
      : await server.tenant(`POST /api/executions/{id}/nodes/{node}/${action}`, { params });
  showOutcome(session, answer, `${params.node}: ${sentences[action]}`);
}

const sentences: Readonly<Record<Action, string>> = {
  cancel: 'is being cancelled',
  kill: 'killed',
  pause: 'paused',
  resume: 'resumed',
  retry: 'tried again',
  skip: 'skipped',
};

interface Outcome {
  readonly outcome: 'committed' | 'known' | 'accepted' | 'dry_run';
  readonly detail?: string | undefined;
}

/** A message that is only stored is no failure: it takes effect later, and `detail` says when. */
export function showOutcome({ out }: Pick<Session, 'out'>, answer: Outcome, sentence: string): void {
  out.answer(answer, () => {
    if (answer.outcome !== 'accepted') return out.line(sentence);
    out.line(`accepted: ${answer.detail ?? 'it takes effect when a conductor takes it'}`);
  });
}

const signalFlags = z.object({ payload: z.string().optional() });

function addSignal(flow: Command, io: Io): void {
  const command = flow
    .command('signal')
    .description('Send a signal to an execution. One that nothing waits for yet is kept for a day.')
    .argument(...executionArgument)
    .argument('<name>', 'the name of the signal')
    .option('--payload <json>', `what it carries (null): ${jsonSource}`)
    .action(verb(io, signalFlags, sendSignal));
  examples(command, [
    [`millrace flow signal ${id} stop`, 'without a payload'],
    [`millrace flow signal ${id} paid --payload '{"amount": 5}'`, 'with one'],
  ]);
}

async function sendSignal(
  session: Session,
  args: readonly string[],
  { payload = 'null' }: z.output<typeof signalFlags>,
): Promise<void> {
  const [text = '', name = ''] = args;
  const params = { id: checkExecutionId(text) };
  const body = { name, payload: await readJsonFlag(session.io, '--payload', payload) };
  const server = await session.connect();
  const answer = await server.tenant('POST /api/executions/{id}/signals', { params, body });
  showOutcome(session, answer, `signal ${name} sent`);
}
