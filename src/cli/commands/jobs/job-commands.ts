/** Commands about jobs: list, show, pause. `run-job.ts` runs a job, and `instant-commands.ts` handles its instants. */
import type { Command } from 'commander';
import { z } from 'zod';
import { examples } from '../../session/flags.ts';
import type { Io } from '../../session/io.ts';
import { showJob } from './job-details.ts';
import { showTime } from '../../print/output.ts';
import { listJobs } from '../../session/pages.ts';
import { findJob, findProject } from '../../session/references.ts';
import { noOptions, type Session, verb } from '../../session/session.ts';

export const jobArgument = ['<job>', 'PROJECT/NAME, or its UUID'] as const;

export function addJobCommands(program: Command, io: Io): void {
  const jobs = program
    .command('jobs')
    .description('List jobs.')
    .option('--project <name>', 'only jobs of this project')
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
    if (jobs.length === 0) return session.out.note('no jobs; `millrace apply -f FILE` creates them');
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
    ['pause', true, 'Pause a job: running runs finish, queued runs wait.'],
    ['unpause', false, 'Resume a paused job; waiting runs start.'],
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
