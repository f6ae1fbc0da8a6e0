/** Commands about the instants of a job: list, activate, clear. */
import type { Command } from 'commander';
import { z } from 'zod';
import { tokenStates } from '../../../api/instants/endpoints.ts';
import { priority, stateWords } from '../../../api/shapes.ts';
import { UsageError } from '../../session/exit.ts';
import { examples, integer, collectValues, stateHelp, wordsOf } from '../../session/flags.ts';
import type { Io } from '../../session/io.ts';
import { jobArgument } from '../jobs/job-commands.ts';
import { count, showTime, stateCell } from '../../print/output.ts';
import { listInstants } from '../../session/pages.ts';
import { checkInstant, findJob, findTask } from '../../session/references.ts';
import { noOptions, type Session, verb } from '../../session/session.ts';

const instantText = 'the logical time, such as 2030-01-31T00:00:00Z';
const maxListed = 10_000;

const filterFlags = z.object({
  priority: priority.optional(),
  task: z.array(z.string()).optional(),
  state: z.string().optional(),
  first: z.string().optional(),
  last: z.string().optional(),
  dryRun: z.boolean().default(false),
});
type Filter = z.output<typeof filterFlags>;

export function addInstantCommands(program: Command, io: Io): void {
  const list = program
    .command('instants')
    .description('List the instants of a job, the newest first, each with its state.')
    .argument(...jobArgument)
    .option('--limit <n>', 'how many at most (20)', integer(1, maxListed))
    .action(verb(io, z.object({ limit: z.int().default(20) }), showInstants));
  examples(list, [['millrace instants shop/daily', 'with the state of each']]);
  addActivate(program, io);
  const clear = program
    .command('clear')
    .description(
      'Clear an instant of a job: its token counts start again from zero, waiting retries are dropped. ' +
        'Queued and running runs are left alone; `millrace cancel` ends them.',
    )
    .argument(...jobArgument)
    .argument('<instant>', instantText)
    .action(verb(io, noOptions, clearInstant));
  examples(clear, [['millrace clear shop/daily 2030-01-31T00:00:00Z', 'start it from the beginning']]);
}

function addActivate(program: Command, io: Io): void {
  const activate = program
    .command('activate')
    .description(
      'Run a task for an instant at once, even if it waits; or, with flags, all tasks with a token that match. ' +
        'Tasks that depend on them follow.',
    )
    .argument(...jobArgument)
    .argument('[task]', "the task's name, or its UUID")
    .argument('[instant]', instantText)
    .option('--task <name>', 'only this task; repeatable', collectValues)
    .option('--state <states>', `only tokens in these states, comma-separated: ${stateHelp}`, wordsOf(stateWords))
    .option('--first <instant>', 'from this instant on')
    .option('--last <instant>', 'up to and including this instant')
    .option(
      '--priority <priority>',
      `${priority.options.join(', ')} (high; backfill with flags)`,
      wordsOf(priority.options),
    )
    .option('--dry-run', 'with flags: only list what would run')
    .action(verb(io, filterFlags, activateTokens));
  examples(activate, [
    ['millrace activate shop/daily load 2030-01-31T00:00:00Z', 'again, or for the first time'],
    [
      'millrace activate shop/daily --state failure,timeout,error --first 2030-01-31T00:00:00Z',
      'all that failed since',
    ],
  ]);
}

async function activateTokens(session: Session, args: readonly string[], options: Filter): Promise<void> {
  const [job = '', task, instant] = args;
  const filtered = [options.task, options.state, options.first, options.last].some((flag) => flag !== undefined);
  if (task !== undefined && instant !== undefined && !filtered && !options.dryRun) {
    return activateOne(session, { job, task, instant }, options);
  }
  if (task !== undefined || !filtered) {
    throw new UsageError('give a task and an instant, or some of --task, --state, --first and --last');
  }
  return activateFound(session, job, options);
}

interface Named {
  readonly job: string;
  readonly task: string;
  readonly instant: string;
}

async function activateOne(session: Session, { job, task, instant: text }: Named, options: Filter): Promise<void> {
  const instant = checkInstant(text);
  const server = await session.connect();
  const id = await findTask(server, await findJob(server, job), task);
  const body = { priority: options.priority };
  const { runs } = await server.tenant('PUT /api/tasks/{id}/tokens/{instant}', { params: { id, instant }, body });
  session.out.answer({ instant, runs }, () => {
    for (const run of runs) session.out.line(run);
  });
  session.out.note(`${count(runs.length, 'run')} at ${showTime(instant)}`);
}

async function activateFound(session: Session, reference: string, options: Filter): Promise<void> {
  const { first, last, task: tasks, priority: rank, dryRun } = options;
  const body = {
    tasks,
    states: options.state?.split(',').map((state) => z.enum(stateWords).parse(state)),
    first: first === undefined ? undefined : checkInstant(first),
    last: last === undefined ? undefined : checkInstant(last),
    priority: rank,
    dry_run: dryRun,
  };
  const { out } = session;
  const server = await session.connect();
  const id = await findJob(server, reference);
  const answer = await server.tenant('POST /api/jobs/{id}/activate', { params: { id }, body });
  const { items = [] } = answer;
  out.answer(answer, () => {
    if (items.length === 0) return;
    out.table(
      [{ title: 'INSTANT' }, { title: 'TASK', flexible: true }, { title: 'STATE' }],
      items.map((item) => [showTime(item.instant), item.task, stateCell(item.state)]),
    );
  });
  const more = items.length > 0 && items.length < answer.tokens ? `; the first ${items.length} are listed` : '';
  out.note(`${count(answer.tokens, 'token')} ${dryRun ? 'would be ' : ''}activated${more}`);
}

async function clearInstant(session: Session, [job = '', text = '']: readonly string[]): Promise<void> {
  const instant = checkInstant(text);
  const server = await session.connect();
  const id = await findJob(server, job);
  const answer = await server.tenant('DELETE /api/jobs/{id}/tokens/{instant}', { params: { id, instant } });
  session.out.answer({ instant, ...answer }, () => {
    const { tokens_cleared: cleared } = answer;
    const nothing = `nothing to clear: the job has no tokens at ${showTime(instant)}`;
    session.out.line(cleared === 0 ? nothing : `${count(cleared, 'token')} of ${showTime(instant)} cleared`);
  });
}

type InstantItem = Awaited<ReturnType<typeof listInstants>>[number];

async function showInstants(
  session: Session,
  [reference = '']: readonly string[],
  { limit }: { limit: number },
): Promise<void> {
  const server = await session.connect();
  const instants = await listInstants(server, await findJob(server, reference), limit);
  session.out.answer(instants, () => {
    if (instants.length === 0) return session.out.note('no instants');
    session.out.table(
      [
        { title: 'INSTANT' },
        { title: 'STATE' },
        { title: 'STARTED' },
        { title: 'FINISHED' },
        { title: 'TASKS', flexible: true },
      ],
      instants.map((item) => [
        showTime(item.instant),
        stateCell(item.state),
        showTime(item.started_at),
        showTime(item.finished_at),
        tasksOf(item),
      ]),
    );
  });
}

function tasksOf({ tasks, active }: InstantItem): string {
  const counts = tokenStates.flatMap((state) => (tasks[state] > 0 ? [`${tasks[state]} ${state}`] : []));
  return [...counts, ...(active === true ? ['active'] : [])].join(', ');
}
