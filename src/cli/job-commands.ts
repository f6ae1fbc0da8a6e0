/** Commands about jobs: list and look, pause, activate, clear, delete. Running one is in `run-job.ts`. */
import type { Command } from 'commander';
import { z } from 'zod';
import { priority } from '../api/endpoints/shapes.ts';
import { examples, wordsOf } from './flags.ts';
import type { Io } from './io.ts';
import { showJob } from './job-details.ts';
import { count, showTime } from './output.ts';
import { listJobs } from './pages.ts';
import { checkInstant, findJob, findProject, findTask } from './references.ts';
import { noOptions, type Session, verb } from './session.ts';

export const jobArgument = ['<job>', 'PROJECT/NAME, or its UUID'] as const;
const instantArgument = ['<instant>', 'the logical time, such as 2030-01-31T00:00:00Z'] as const;

export function addJobCommands(program: Command, io: Io): void {
  const jobs = program
    .command('jobs')
    .description('List jobs.')
    .option('--project <name>', 'of this project only')
    .action(verb(io, z.object({ project: z.string().optional() }), showJobs));
  examples(jobs, [
    ['millrace jobs --project shop', 'of one project'],
    ["millrace jobs --json | jq -r '.[].name'", 'for a script'],
  ]);
  const job = program
    .command('job')
    .description('Show a job: its state, tasks, triggers and latest instants.')
    .argument(...jobArgument)
    .action(verb(io, noOptions, showJob));
  examples(job, [['millrace job shop/daily', 'by project and name']]);
  addPausing(program, io);
  addTokenCommands(program, io);
}

async function showJobs(
  session: Session,
  _: readonly string[],
  options: { project?: string | undefined },
): Promise<void> {
  const server = await session.connect();
  const project = options.project === undefined ? undefined : await findProject(server, options.project);
  const jobs = (await listJobs(server)).filter((job) => project === undefined || job.project_id === project.id);
  session.out.answer(jobs, () => {
    if (jobs.length === 0) return session.out.note('no jobs; `millrace apply -f FILE` makes them');
    session.out.table(
      [
        { title: 'PROJECT', flexible: true },
        { title: 'JOB', flexible: true },
        { title: 'STATE' },
        { title: 'VERSION', align: 'right' },
        { title: 'UPDATED' },
        { title: 'DESCRIPTION', flexible: true },
      ],
      jobs.map((job) => [
        job.project,
        job.name,
        job.paused ? { text: 'paused', style: 'yellow' as const } : 'live',
        job.version,
        showTime(job.updated_at),
        job.description,
      ]),
    );
  });
}

function addPausing(program: Command, io: Io): void {
  const pausing = [
    ['pause', true, 'Pause a job: what runs finishes, what is queued waits.'],
    ['unpause', false, 'Let a paused job go on; what waited runs now.'],
  ] as const;
  for (const [name, paused, description] of pausing) {
    const command = program
      .command(name)
      .description(description)
      .argument(...jobArgument)
      .action(verb(io, noOptions, (session, [job = '']) => setPaused(session, job, paused)));
    examples(command, [[`millrace ${name} shop/daily`, 'by project and name']]);
  }
}

async function setPaused(session: Session, reference: string, paused: boolean): Promise<void> {
  const server = await session.connect();
  const id = await findJob(server, reference);
  await server.tenant('PUT /api/jobs/{id}/paused', { params: { id }, body: { paused } });
  session.out.answer({ id, paused }, () => session.out.line(`${reference} is ${paused ? 'paused' : 'live'}`));
}

function addTokenCommands(program: Command, io: Io): void {
  const activate = program
    .command('activate')
    .description('Run one task for an instant at once, whatever it waits for. What depends on it follows.')
    .argument(...jobArgument)
    .argument('<task>', "the task's name, or its UUID")
    .argument(...instantArgument)
    .option('--priority <priority>', `${priority.options.join(', ')} (high)`, wordsOf(priority.options))
    .action(verb(io, z.object({ priority: priority.optional() }), activateTask));
  examples(activate, [['millrace activate shop/daily load 2030-01-31T00:00:00Z', 'again, or for the first time']]);
  const clear = program
    .command('clear')
    .description('Clear an instant of a job: its counts start again from nothing, waiting retries are dropped.')
    .argument(...jobArgument)
    .argument(...instantArgument)
    .action(verb(io, noOptions, clearInstant));
  examples(clear, [['millrace clear shop/daily 2030-01-31T00:00:00Z', 'as if it had never been']]);
}

type Activation = { readonly priority?: z.output<typeof priority> | undefined };

async function activateTask(session: Session, args: readonly string[], options: Activation): Promise<void> {
  const [job = '', task = '', instantText = ''] = args;
  const instant = checkInstant(instantText);
  const server = await session.connect();
  const id = await findTask(server, await findJob(server, job), task);
  const body = { priority: options.priority };
  const { runs } = await server.tenant('PUT /api/tasks/{id}/tokens/{instant}', { params: { id, instant }, body });
  session.out.answer({ instant, runs }, () => {
    for (const run of runs) session.out.line(run);
  });
  session.out.note(`${count(runs.length, 'run')} at ${showTime(instant)}`);
}

async function clearInstant(session: Session, [job = '', instantText = '']: readonly string[]): Promise<void> {
  const instant = checkInstant(instantText);
  const server = await session.connect();
  const id = await findJob(server, job);
  const answer = await server.tenant('DELETE /api/jobs/{id}/tokens/{instant}', { params: { id, instant } });
  session.out.answer({ instant, ...answer }, () => {
    session.out.line(`${count(answer.tokens_cleared, 'token')} of ${showTime(instant)} cleared`);
  });
}
