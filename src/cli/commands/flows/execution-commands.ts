/** `millrace flow executions|show|history`: looking at executions. */
import type { Command } from 'commander';
import { z } from 'zod';
import { isId } from '../../../kernel/id.ts';
import { formatAge } from '../../print/format-age.ts';
import { showTime } from '../../print/output.ts';
import { UsageError } from '../../session/exit.ts';
import { examples, integer } from '../../session/flags.ts';
import type { Io } from '../../session/io.ts';
import { listExecutions } from '../../session/pages.ts';
import { type Session, verb } from '../../session/session.ts';
import { checkExecutionId, executionArgument, fetchExecution, renderExecution, statusCell } from './execution.ts';
import { filterFlags, maxVersion, readFilter, withFilter } from './execution-filter.ts';
import { followExecution } from './follow-execution.ts';
import { showHistory } from './history.ts';

const maxListed = 100_000;
const listFlags = z.object({ ...filterFlags, parent: z.string().optional(), limit: z.int().default(50) });
const showFlags = z.object({
  rev: z.int().optional(),
  follow: z.boolean().default(false),
  document: z.boolean().default(false),
});
const historyFlags = z.object({ follow: z.boolean().default(false), after: z.int().optional() });

export function addExecutionCommands(flow: Command, io: Io): void {
  const list = withFilter(flow.command('executions').description('List executions, the newest first.'))
    .option('--parent <id>', 'only those that this execution has called')
    .option('--limit <n>', 'how many at most (50)', integer(1, maxListed))
    .action(verb(io, listFlags, showExecutions));
  examples(list, [
    ['millrace flow executions --status incident', 'what needs repair'],
    ['millrace flow executions --flow order --label customer=ann', 'of one customer'],
    ['millrace flow executions --key e1', 'the one that was started with this key'],
  ]);
  const show = flow
    .command('show')
    .description(
      'Draw an execution: each step with its state, what it waits for and since when; and how to repair incidents.',
    )
    .argument(...executionArgument)
    .option('--rev <n>', 'as it was at this revision', integer(0, maxVersion))
    .option('-f, --follow', 'draw it again with every change, until it ends')
    .option('--document', 'print the document that it follows, as JSON')
    .action(verb(io, showFlags, showOne));
  examples(show, [
    ['millrace flow show 01890a5d-…', 'where is it, and why?'],
    ['millrace flow show 01890a5d-… --follow', 'watch it'],
    ['millrace flow show 01890a5d-… --rev 3', 'as it was after its third commit'],
  ]);
  const history = flow
    .command('history')
    .description('Print the commits of an execution: what came, who sent it, and what it changed.')
    .argument(...executionArgument)
    .option('--after <rev>', 'only commits after this revision', integer(0, maxVersion))
    .option('-f, --follow', 'go on until it ends')
    .action(verb(io, historyFlags, showHistory));
  examples(history, [
    ['millrace flow history 01890a5d-…', 'from the beginning'],
    ['millrace flow history 01890a5d-… --json | jq -r .summary', 'JSON lines for a program'],
  ]);
}

async function showExecutions(
  session: Session,
  _: readonly string[],
  options: z.output<typeof listFlags>,
): Promise<void> {
  const { parent, limit } = options;
  if (parent !== undefined && !isId(parent)) throw new UsageError(`--parent ${JSON.stringify(parent)} is not a UUID`);
  const filter = { ...readFilter(options), parent };
  const items = await listExecutions(await session.connect(), filter, limit);
  const nowMs = Date.now();
  session.out.answer(items, () => {
    if (items.length === 0) return session.out.note('no executions');
    session.out.table(
      [
        { title: 'EXECUTION' },
        { title: 'FLOW', flexible: true },
        { title: 'STATUS' },
        { title: 'STARTED' },
        { title: 'CHANGED', align: 'right' },
        { title: 'KEY', flexible: true },
        { title: 'LABELS', flexible: true },
      ],
      items.map((each) => [
        each.id,
        `${each.flow} v${each.version}`,
        statusCell(each.status),
        showTime(each.created_at),
        formatAge(each.updated_at, nowMs),
        each.key,
        Object.entries(each.labels)
          .map(([name, value]) => `${name}=${value}`)
          .join(' '),
      ]),
    );
  });
}

async function showOne(
  session: Session,
  [text = '']: readonly string[],
  options: z.output<typeof showFlags>,
): Promise<void> {
  const { rev, follow, document } = options;
  if (follow && (rev !== undefined || document))
    throw new UsageError('--follow goes with neither --rev nor --document');
  const id = checkExecutionId(text);
  const { out, io } = session;
  const server = await session.connect();
  if (document) {
    const printed = await server.tenant('GET /api/executions/{id}/document', { params: { id }, query: { rev } });
    return out.line(JSON.stringify(printed, null, 2));
  }
  if (!follow) {
    const execution = await fetchExecution(server, id, rev);
    return out.answer(execution, () => {
      for (const line of renderExecution(execution, out, { nowMs: Date.now() })) out.line(line);
    });
  }
  const onChange = out.json ? (each: unknown) => out.line(JSON.stringify(each)) : undefined;
  const ended = await followExecution(session, server, { id, sink: io.stdout, stopsAtIncident: false, onChange });
  if (out.json || io.stdout.isTTY === true) return;
  for (const line of renderExecution(ended, out, { nowMs: Date.now() })) out.line(line);
}
