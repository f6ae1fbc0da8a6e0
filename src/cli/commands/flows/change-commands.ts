/** `millrace flow patch|fork`: changing a live execution, and starting another one from its state. */
import type { Command } from 'commander';
import { z } from 'zod';
import { CallFailed } from '../../../http/client.ts';
import { isRecord } from '../../../kernel/text/path.ts';
import { renderChanges } from '../../print/diff.ts';
import { byArgument } from '../../session/arguments.ts';
import { UsageError } from '../../session/exit.ts';
import { collectValues, examples, integer, requireText } from '../../session/flags.ts';
import type { Io } from '../../session/io.ts';
import { readAssignment } from '../../session/json-value.ts';
import type { Server } from '../../session/server.ts';
import { type Session, verb } from '../../session/session.ts';
import { showOutcome } from './control-commands.ts';
import { checkExecutionId, executionArgument } from './execution.ts';
import { maxVersion } from './execution-filter.ts';

const changeFlags = { set: z.array(z.string()).default([]), swap: z.array(z.string()).default([]) } as const;
const patchFlags = z.object({
  ...changeFlags,
  dryRun: z.boolean().default(false),
  force: z.boolean().default(false),
});
const forkFlags = z.object({ ...changeFlags, rev: z.int().optional(), key: z.string().optional() });

export function addChangeCommands(flow: Command, io: Io): void {
  const patch = withChanges(flow.command('patch'))
    .description(
      'Change a live execution: set its fields, or replace steps of its tree. --dry-run shows what would happen.',
    )
    .option('--dry-run', 'only show the difference, and what would be cancelled')
    .option('--force', 'also cancel tasks that are under way inside a replaced step')
    .action(verb(io, patchFlags, patchExecution));
  examples(patch, [
    ['millrace flow patch 01890a5d-… --set f.amount=12', 'correct a field'],
    [`millrace flow patch 01890a5d-… --swap 'steps[1]=pay-by-hand.yaml' --dry-run`, 'what would it change?'],
  ]);
  const fork = withChanges(flow.command('fork'))
    .description('Start another execution from the state of this one, now or at an earlier revision. Prints its id.')
    .option('--rev <n>', 'from the state at this revision', integer(1, maxVersion))
    .option('--key <key>', 'your own name for the new execution', requireText)
    .action(verb(io, forkFlags, forkExecution));
  examples(fork, [
    ['millrace flow fork 01890a5d-… --rev 3', 'again from its third commit on'],
    ['millrace flow fork 01890a5d-… --set f.amount=12', 'with another field'],
  ]);
}

function withChanges(command: Command): Command {
  return command
    .argument(...executionArgument)
    .option('--set <f.name=json>', 'set a field; repeatable', collectValues)
    .option(
      '--swap <step=file>',
      'replace a step, by its place such as steps[1].then[0] or its node, with the steps in a file; repeatable',
      collectValues,
    );
}

interface Change {
  readonly fields?: Record<string, unknown>;
  readonly swap?: Record<string, unknown[]>;
}

async function readChange(
  io: Io,
  { set, swap }: { readonly set: readonly string[]; readonly swap: readonly string[] },
): Promise<Change> {
  const swaps: [string, unknown[]][] = [];
  for (const text of swap) swaps.push(await readSwap(io, text));
  return {
    ...(set.length === 0 ? {} : { fields: Object.fromEntries(set.map(readField)) }),
    ...(swaps.length === 0 ? {} : { swap: Object.fromEntries(swaps) }),
  };
}

function readField(text: string): [name: string, value: unknown] {
  const [path, value] = readAssignment('--set', text);
  const name = path.replace(/^f\./, '');
  if (!name.includes('.')) return [name, value];
  const [top = ''] = name.split('.');
  throw new UsageError(`--set ${path}: a field is set as a whole; write --set f.${top}=JSON with all of it`);
}

/** The file holds a list of steps, one step, or a document of which the steps are taken. */
async function readSwap(io: Io, text: string): Promise<[place: string, steps: unknown[]]> {
  // the code that reads documents is loaded on demand
  const { readDocumentFiles, showFault } = await import('../../session/document-files.ts');
  const at = text.lastIndexOf('=');
  const [place, file] = [text.slice(0, at), text.slice(at + 1)];
  if (at <= 0 || file === '')
    throw new UsageError(`--swap ${JSON.stringify(text)} must be STEP=FILE, such as steps[1]=pay.yaml`);
  const { documents, faults } = await readDocumentFiles(io, [file]);
  const [fault] = faults;
  if (fault !== undefined) throw new UsageError(`--swap ${place}: ${showFault(fault)}`);
  const [only, ...others] = documents;
  if (only === undefined || others.length > 0)
    throw new UsageError(`--swap ${place}: ${file} must hold one list of steps`);
  const { value } = only;
  if (Array.isArray(value)) return [place, value as unknown[]];
  if (!isRecord(value)) throw new UsageError(`--swap ${place}: ${file} must hold a list of steps`);
  return [place, Array.isArray(value['steps']) ? (value['steps'] as unknown[]) : [value]];
}

async function patchExecution(
  session: Session,
  [text = '']: readonly string[],
  flags: z.output<typeof patchFlags>,
): Promise<void> {
  const id = checkExecutionId(text);
  const change = await readChange(session.io, flags);
  if (change.fields === undefined && change.swap === undefined) throw new UsageError('give --set or --swap');
  const server = await session.connect();
  const body = { ...change, dry_run: flags.dryRun, force: flags.force };
  const patching = server.tenant('PATCH /api/executions/{id}', { params: { id }, body });
  const answer = await byArgument(patching, argumentNames).catch((error: unknown) => {
    const isConflict = error instanceof CallFailed && error.status === 409;
    if (isConflict && change.swap !== undefined && !flags.force)
      session.out.note('--force also cancels tasks that are under way inside a replaced step');
    throw error;
  });
  if (session.out.json) return session.out.answer(answer, () => {});
  showDiff(session, answer.diff);
  showOutcome(session, answer, flags.dryRun ? 'nothing was changed: this was a dry run' : 'changed');
}

const argumentNames = { 'body.fields': '--set', 'body.swap': '--swap', fields: '--set', swap: '--swap' };

type Diff = Awaited<ReturnType<typeof patchCall>>['diff'];
function patchCall(server: Server, id: string) {
  return server.tenant('PATCH /api/executions/{id}', { params: { id }, body: {} });
}

function showDiff({ out }: Session, { tree, cancelled, timers_removed: timers }: Diff): void {
  const changes = tree.map(({ path, from, to }) => {
    if (from === null) return { path, change: 'added' as const, after: to };
    return to === null
      ? { path, change: 'removed' as const, before: from }
      : { path, change: 'changed' as const, before: from, after: to };
  });
  for (const line of renderChanges(changes, out.paint)) out.line(line);
  for (const node of cancelled) out.line(`    ${out.paint('red', `- node ${node} ends`)}`);
  for (const timer of timers) out.line(`    ${out.paint('red', `- timer ${timer} is removed`)}`);
}

async function forkExecution(
  session: Session,
  [text = '']: readonly string[],
  flags: z.output<typeof forkFlags>,
): Promise<void> {
  const params = { id: checkExecutionId(text) };
  const body = { ...(await readChange(session.io, flags)), rev: flags.rev, key: flags.key };
  const server = await session.connect();
  const forked = await byArgument(server.tenant('POST /api/executions/{id}/fork', { params, body }), argumentNames);
  if (!forked.created) session.out.note(`the execution with the key ${flags.key} exists already`);
  if (forked.detail !== undefined) session.out.note(forked.detail);
  session.out.answer(forked, () => session.out.line(forked.id));
}
