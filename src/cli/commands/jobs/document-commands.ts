/**
 * Commands about job documents: apply, validate, schema.
 *
 * The code that reads documents (YAML, the validator) is loaded on demand, so that other commands start 0.1 s sooner.
 */
import type { Command } from 'commander';
import { z } from 'zod';
import { Ended, exitCodes } from '../../session/exit.ts';
import { examples, collectValues } from '../../session/flags.ts';
import type { Io } from '../../session/io.ts';
import { count } from '../../print/output.ts';
import { noOptions, type Session, verb } from '../../session/session.ts';

export function addDocumentCommands(program: Command, io: Io): void {
  addApply(program, io);
  const validate = program
    .command('validate')
    .description('Check job files without a server: every fault as FILE:PATH: MESSAGE. Exits with 1 if there is one.')
    .argument('<path...>', 'files (.json, .yaml, .yml), folders, or - for stdin')
    .action(verb(io, noOptions, validateFiles));
  examples(validate, [
    ['millrace validate jobs/', 'all files of a folder, and of the folders in it'],
    ['millrace validate --json jobs/ | jq .faults', 'for an editor or a CI job'],
  ]);
  const schema = program
    .command('schema')
    .description('Print the JSON Schema of job documents, for editors and other tools. Needs no server.')
    .action(verb(io, noOptions, printSchema));
  examples(schema, [['millrace schema > job.schema.json', 'then select it in your editor']]);
}

const applyFlags = z.object({
  file: z.array(z.string()),
  dryRun: z.boolean().default(false),
  after: z.string().optional(),
  createProject: z.boolean().default(false),
  prune: z.boolean().default(false),
  yes: z.boolean().default(false),
});

function addApply(program: Command, io: Io): void {
  const command = program
    .command('apply')
    .description(
      'Create or replace jobs from files, and show what changes. All files are checked first: if one has a fault, ' +
        'nothing is written. Jobs may refer to each other in any order.',
    )
    .requiredOption(
      '-f, --file <path>',
      'a file (.json, .yaml, .yml), a folder, or - for stdin; repeatable',
      collectValues,
    )
    .option('--dry-run', 'only show what would change, and what would fire or be caught up at once')
    .option('--after <instant>', 'with --dry-run: list the instants to be caught up after this one')
    .option('--create-project', 'create the projects that do not exist yet')
    .option('--prune', 'delete the jobs of these projects that no file describes')
    .option('--yes', 'do not ask before deleting')
    .action(verb(io, applyFlags, async (session, _, flags) => (await import('./apply.ts')).apply(session, flags)));
  examples(command, [
    ['millrace apply -f daily.yaml --create-project', 'the first job of a project'],
    ['millrace apply -f jobs/ --dry-run', 'what would change'],
    ['millrace apply -f jobs/ --prune --yes', 'in a deployment: the folder describes all jobs'],
    ['generate | millrace apply -f -', 'from another program'],
  ]);
}

async function printSchema({ out }: Session): Promise<void> {
  const { jobJsonSchema } = await import('../../../jobs/document/json-schema.ts');
  out.line(JSON.stringify(jobJsonSchema(), null, 2));
}

async function validateFiles({ io, out }: Session, paths: readonly string[]): Promise<void> {
  const { readJobs } = await import('./documents.ts');
  const { showFault } = await import('../../session/document-files.ts');
  const { documents, faults, warnings } = await readJobs(io, paths);
  const jobs = documents.map(({ source, job }) => ({ source, project: job.project, name: job.name }));
  out.answer({ ok: faults.length === 0, jobs, faults, warnings }, () => {
    for (const fault of faults) out.line(showFault(fault));
  });
  if (!out.json) for (const warning of warnings) out.note(`warning: ${showFault(warning)}`);
  if (faults.length === 0) return out.note(`${count(documents.length, 'job')}, no faults`);
  out.note(count(faults.length, 'fault'));
  throw new Ended(exitCodes.failed);
}
