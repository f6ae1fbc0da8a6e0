/** `millrace import`: copies an installation of another product into a tenant. */
import { type Command, Option } from 'commander';
import { z } from 'zod';
import { collectValues, examples, requireText } from '../../session/flags.ts';
import { UsageError } from '../../session/exit.ts';
import type { Io } from '../../session/io.ts';
import { verb } from '../../session/session.ts';
import { importWaterwheel } from './import-waterwheel.ts';

const flags = z.object({
  db: z.string().optional(),
  project: z.array(z.string()).default([]),
  dryRun: z.boolean().default(false),
  start: z.boolean().default(false),
  overwrite: z.boolean().default(false),
  underWay: z.enum(['again', 'leave']).optional(),
});

const about = `
It reads the database of Waterwheel in one snapshot and never writes to it. It copies projects with their configuration, jobs,
what their triggers have fired, the counts of tokens, and the stash. Jobs keep their ids. Run it as often as you like: what is
here already stays, and what was changed here is reported and left alone.

Every imported job is paused until --start, so that nothing fires in both systems. --start wants Waterwheel to stand still. It
unpauses the jobs that were not paused in Waterwheel at the last import without --start.

docs/coming-from-waterwheel.md leads through the change-over.`;

export function addImportCommands(program: Command, io: Io): void {
  const waterwheel = program
    .command('import')
    .description('Copy an installation of another product.')
    .command('waterwheel')
    .description('Copy projects, jobs, positions of triggers, tokens and stash of a Waterwheel installation.')
    .option('--db <url>', 'the database of Waterwheel, postgres://… (WATERWHEEL_DB_URL)', requireText)
    .option('--project <name>', 'only this project; may be repeated', collectValues)
    .option('--dry-run', 'only report what would be done')
    .option('--start', 'start the imported jobs')
    .option('--overwrite', 'replace what was changed here')
    .addOption(
      new Option(
        '--under-way <what>',
        'runs that Waterwheel has not ended at the start: run them again, or leave them',
      ).choices(['again', 'leave']),
    )
    .addHelpText('after', about)
    .action(
      verb(io, flags, async (session, _, options) => {
        const db = options.db ?? io.env['WATERWHEEL_DB_URL'] ?? '';
        if (!URL.canParse(db) || !/^postgres(ql)?:$/.test(new URL(db).protocol)) {
          throw new UsageError(
            'the database of Waterwheel is missing: give --db postgres://…, or set WATERWHEEL_DB_URL',
          );
        }
        await importWaterwheel(session, { ...options, db, underWay: options.underWay });
      }),
    );
  examples(waterwheel, [
    ['millrace import waterwheel --db "$URL" --dry-run', 'what would be imported, and what would fire'],
    ['millrace import waterwheel --db "$URL"', 'import; jobs stay paused'],
    ['millrace import waterwheel --db "$URL" --start', 'import what has happened since, and start'],
    ['millrace import waterwheel --db "$URL" --project shop', 'one project, and the global stash'],
  ]);
}
