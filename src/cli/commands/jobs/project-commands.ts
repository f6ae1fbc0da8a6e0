/** Commands about projects: list, create, delete; and deleting jobs. */
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { Command } from 'commander';
import { z } from 'zod';
import { isRecord } from '../../../kernel/text/path.ts';
import { MillraceError } from '../../../errors.ts';
import { examples } from '../../session/flags.ts';
import type { Io } from '../../session/io.ts';
import { jobArgument } from './job-commands.ts';
import { count } from '../../print/output.ts';
import { listProjects } from '../../session/pages.ts';
import { findJob, findProject } from '../../session/references.ts';
import { noOptions, type Session, verb } from '../../session/session.ts';

const projectArgument = ['<project>', 'its name, or its UUID'] as const;

export function addProjectCommands(program: Command, io: Io): void {
  const projects = program
    .command('projects')
    .description('List projects.')
    .action(verb(io, noOptions, showProjects));
  examples(projects, [['millrace projects', 'by name']]);
  const create = program
    .command('project')
    .description('Create projects.')
    .command('create')
    .description('Create a project, or change the one of that name. Without --config the old configuration is kept.')
    .argument('<name>', 'any printable characters except / and @')
    .option('--description <text>', 'what it is for')
    .option('--config <file>', 'configuration for its tasks: a JSON or YAML file')
    .action(verb(io, createFlags, createProject));
  examples(create, [['millrace project create shop --description "the web shop"', 'and then `millrace apply`']]);
  addDelete(
    program.command('delete').description('Delete a job or a project; the history of runs stays readable.'),
    io,
  );
}

async function showProjects(session: Session): Promise<void> {
  const projects = await listProjects(await session.connect());
  session.out.answer(projects, () => {
    if (projects.length === 0) return session.out.note('no projects; `millrace project create NAME` creates one');
    session.out.table(
      [{ title: 'PROJECT', flexible: true }, { title: 'ID' }, { title: 'DESCRIPTION', flexible: true }],
      projects.map((project) => [project.name, project.id, project.description]),
    );
  });
}

const createFlags = z.object({ description: z.string().optional(), config: z.string().optional() });

async function createProject(
  session: Session,
  [name = '']: readonly string[],
  options: z.output<typeof createFlags>,
): Promise<void> {
  const config = options.config === undefined ? undefined : await readConfig(session.io, options.config);
  const server = await session.connect();
  const body = { name, description: options.description, config };
  const project = await server.tenant('POST /api/projects', { body });
  session.out.answer(project, () => session.out.line(`project ${project.name} (${project.id})`));
}

async function readConfig(io: Io, path: string): Promise<Record<string, unknown>> {
  const { readDocument } = await import('../../../documents/text.ts');
  const text = await readFile(resolve(io.cwd, path), 'utf8');
  const read = readDocument(text, /\.json$/i.test(path) ? 'json' : 'yaml');
  if (!read.ok) throw new MillraceError('bad_document', `${path} is not valid JSON or YAML`, { faults: read.faults });
  if (isRecord(read.value)) return read.value;
  throw new MillraceError('bad_document', `${path} must hold a mapping of names to values`);
}

const deleteFlags = z.object({ yes: z.boolean().default(false) });
type DeleteFlags = z.output<typeof deleteFlags>;

function addDelete(command: Command, io: Io): void {
  const job = command
    .command('job')
    .description('Delete a job: its triggers stop, its queued runs are cancelled.')
    .argument(...jobArgument)
    .option('--yes', 'do not ask')
    .action(verb(io, deleteFlags, deleteJob));
  examples(job, [['millrace delete job shop/daily --yes', 'in a script']]);
  const project = command
    .command('project')
    .description('Delete a project and all its jobs.')
    .argument(...projectArgument)
    .option('--yes', 'do not ask')
    .action(verb(io, deleteFlags, deleteProject));
  examples(project, [['millrace delete project shop', 'asks first']]);
}

async function deleteJob(session: Session, [reference = '']: readonly string[], { yes }: DeleteFlags): Promise<void> {
  const server = await session.connect();
  const id = await findJob(server, reference);
  await session.confirm(`Delete the job ${reference}?`, yes);
  await server.tenant('DELETE /api/jobs/{id}', { params: { id } });
  session.out.answer({ id, deleted: true }, () => session.out.line(`job ${reference} is deleted`));
}

async function deleteProject(
  session: Session,
  [reference = '']: readonly string[],
  { yes }: DeleteFlags,
): Promise<void> {
  const server = await session.connect();
  const { id, name } = await findProject(server, reference);
  const { num_jobs } = await server.tenant('GET /api/projects/{id}', { params: { id } });
  await session.confirm(`Delete the project ${name} with ${count(num_jobs, 'job')}?`, yes);
  await server.tenant('DELETE /api/projects/{id}', { params: { id } });
  session.out.answer({ id, deleted: true }, () => session.out.line(`project ${name} is deleted`));
}
