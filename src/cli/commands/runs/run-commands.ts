/** Commands about runs: list, follow the log, cancel. */
import type { Command } from 'commander';
import { z } from 'zod';
import { stateWords } from '../../../api/shapes.ts';
import { MillraceError } from '../../../errors.ts';
import { formatDuration } from '../../../kernel/text/duration.ts';
import { isId } from '../../../kernel/id.ts';
import { UsageError } from '../../session/exit.ts';
import { examples, integer, stateHelp, wordsOf } from '../../session/flags.ts';
import { followLog } from './follow-log.ts';
import { type Io, write } from '../../session/io.ts';
import { chunksOf, readLines } from '../../print/lines.ts';
import { showTime, stateCell, stateWord } from '../../print/output.ts';
import { listRuns, type RunItem } from '../../session/pages.ts';
import { checkRunId, findJob, findTask } from '../../session/references.ts';
import type { Server } from '../../session/server.ts';
import { noOptions, type Session, verb } from '../../session/session.ts';
import { oneLine } from '../../print/width.ts';

const runArgument = ['<run>', 'its UUID, as `millrace runs` lists it'] as const;
const maxListedRuns = 100_000;

const listFlags = z.object({
  job: z.string().optional(),
  task: z.string().optional(),
  state: z.string().optional(),
  limit: z.int().default(50),
});

export function addRunCommands(program: Command, io: Io): void {
  const runs = program
    .command('runs')
    .description('List runs, the newest first.')
    .option('--job <job>', 'only runs of this job: PROJECT/NAME, or its UUID')
    .option('--task <task>', 'only runs of this task: its name with --job, or its UUID')
    .option('--state <states>', `only runs in these states, comma-separated: ${stateHelp}`, wordsOf(stateWords))
    .option('--limit <n>', 'how many at most (50)', integer(1, maxListedRuns))
    .action(verb(io, listFlags, showRuns));
  examples(runs, [
    ['millrace runs --job shop/daily --limit 5', 'the latest of a job'],
    ['millrace runs --state failure,timeout,error', 'what went wrong'],
  ]);
  const logs = program
    .command('logs')
    .description("Print a run's output, both streams in order.")
    .argument(...runArgument)
    .option('-f, --follow', 'follow the log until the run ends')
    .action(verb(io, z.object({ follow: z.boolean().default(false) }), showLogs));
  examples(logs, [['millrace logs -f 01890a5d-…', 'watch it run']]);
  const cancel = program
    .command('cancel')
    .description('Cancel a run: a queued one ends at once, a running one is killed by its worker.')
    .argument(...runArgument)
    .action(verb(io, noOptions, cancelRun));
  examples(cancel, [['millrace cancel 01890a5d-…', 'tasks that depend on it do not start']]);
}

async function showRuns(session: Session, _: readonly string[], options: z.output<typeof listFlags>): Promise<void> {
  const server = await session.connect();
  const { state } = options;
  const runs = await listRuns(server, { ...(await findOwner(server, options)), state }, options.limit);
  session.out.answer(runs, () => {
    if (runs.length === 0) return session.out.note('no runs');
    session.out.table(
      [
        { title: 'RUN' },
        { title: 'STATE' },
        { title: 'JOB', flexible: true },
        { title: 'TASK', flexible: true },
        { title: 'INSTANT' },
        { title: 'TRY', align: 'right' },
        { title: 'TOOK', align: 'right' },
        { title: 'REASON', flexible: true },
      ],
      runs.map((run) => [
        run.id,
        stateCell(run.state),
        run.job && `${run.job.project}/${run.job.name}`,
        run.task?.name ?? null,
        showTime(run.instant),
        run.attempt,
        timeTaken(run),
        run.reason,
      ]),
    );
  });
}

async function findOwner(
  server: Server,
  options: z.output<typeof listFlags>,
): Promise<{ job?: string; task?: string }> {
  const job = options.job === undefined ? undefined : await findJob(server, options.job);
  if (options.task === undefined) return job === undefined ? {} : { job };
  if (job !== undefined) return { job, task: await findTask(server, job, options.task) };
  if (isId(options.task)) return { task: options.task };
  throw new UsageError('--task with a name needs --job: names are unique within a job only');
}

function timeTaken(run: RunItem): string | null {
  if (run.started_at === null || run.finished_at === null) return null;
  return formatDuration(Math.max(0, Date.parse(run.finished_at) - Date.parse(run.started_at)));
}

async function showLogs(session: Session, [text = '']: readonly string[], options: { follow: boolean }): Promise<void> {
  const id = checkRunId(text);
  const server = await session.connect();
  const chunks = options.follow ? followLog(session, server, id) : wholeLog(server, id);
  let silent = true;
  for await (const part of session.out.json ? readLines(chunks) : chunks) {
    silent = false;
    await write(session.io.stdout, typeof part === 'string' ? `${JSON.stringify({ line: part })}\n` : part);
  }
  if (silent) await printReason(session, server, id);
}

async function* wholeLog(server: Server, id: string): AsyncGenerator<Uint8Array> {
  const response = await server.stream(`/api/runs/${id}/logs`);
  yield* chunksOf(response);
  if (!response.complete) throw new MillraceError('unreachable', 'connection lost; the log is incomplete');
}

/** Prints the state and the reason of a run without output. */
async function printReason(session: Session, server: Server, id: string): Promise<void> {
  const { reason, state } = await server.tenant('GET /api/runs/{id}', { params: { id } });
  const word = stateWord(state);
  session.out.note(reason === null ? `no output (${word})` : `no output; ${word}: ${oneLine(reason)}`);
}

async function cancelRun(session: Session, [text = '']: readonly string[]): Promise<void> {
  const id = checkRunId(text);
  const server = await session.connect();
  const answer = await server.tenant('POST /api/runs/{id}/cancel', { params: { id } });
  const sentences = {
    cancelled: 'cancelled',
    cancelling: 'its worker will kill it',
    finished: 'it had already ended',
  };
  session.out.answer(answer, () => session.out.line(sentences[answer.outcome]));
}
