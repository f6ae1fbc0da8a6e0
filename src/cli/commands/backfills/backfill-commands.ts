/** `millrace backfill` and `backfills`: fire instants of a job again, follow the progress, cancel. */
import type { Command } from 'commander';
import { z } from 'zod';
import { priority } from '../../../api/shapes.ts';
import { MillraceError } from '../../../errors.ts';
import { isId } from '../../../kernel/id.ts';
import { Ended, exitCodes, UsageError } from '../../session/exit.ts';
import { examples, integer, collectValues, wordsOf } from '../../session/flags.ts';
import { type Backfill, fetchBackfill, followBackfill, progressOf } from './follow-backfill.ts';
import type { Io } from '../../session/io.ts';
import { jobArgument } from '../jobs/job-commands.ts';
import { count, showTime, stateStyle } from '../../print/output.ts';
import { listBackfills } from '../../session/pages.ts';
import { checkInstant, findJob } from '../../session/references.ts';
import type { Server } from '../../session/server.ts';
import { noOptions, type Session, verb } from '../../session/session.ts';

const orders = ['earliest', 'latest', 'random'] as const;
const maxPreviewItems = 1_000;
const maxListed = 10_000;

const flags = z.object({
  first: z.string().optional(),
  last: z.string().optional(),
  trigger: z.array(z.string()).optional(),
  order: z.enum(orders).optional(),
  priority: priority.optional(),
  missing: z.boolean().default(false),
  name: z.string().optional(),
  dryRun: z.boolean().default(false),
  wait: z.boolean().default(false),
});
type Flags = z.output<typeof flags>;

export function addBackfillCommands(program: Command, io: Io): void {
  const backfill = program
    .command('backfill')
    .description('Fire all instants of a job from --first to --last again, while its triggers continue to fire.')
    .argument(...jobArgument)
    .option('--first <instant>', 'the first instant, such as 2030-01-01T00:00:00Z')
    .option('--last <instant>', 'the last instant, inclusive')
    .option('--trigger <name>', 'only instants of this trigger; repeatable', collectValues)
    .option('--order <order>', `${orders.join(', ')} (earliest)`, wordsOf(orders))
    .option('--priority <priority>', `${priority.options.join(', ')} (backfill)`, wordsOf(priority.options))
    .option('--missing', 'only instants that have never fired')
    .option('--name <name>', 'a second request with the same name creates no second backfill')
    .option('--dry-run', 'only list the instants')
    .option('--wait', 'wait until it ends; exits with 1 unless all runs succeeded')
    .action(verb(io, flags, makeBackfill));
  examples(backfill, [
    [
      'millrace backfill shop/daily --first 2030-01-01T00:00:00Z --last 2030-01-31T00:00:00Z --dry-run',
      'list what it would fire',
    ],
    ['millrace backfill shop/daily --first 2030-01-01T00:00:00Z --last 2030-01-31T00:00:00Z --wait', 'January again'],
    ['millrace backfill cancel 01890a5d-…', 'running runs finish'],
  ]);
  addCancel(backfill, io);
  const list = program
    .command('backfills')
    .description('List backfills, the newest first.')
    .argument('[job]', 'only of this job: PROJECT/NAME, or its UUID')
    .option('--limit <n>', 'how many at most (20)', integer(1, maxListed))
    .action(verb(io, z.object({ limit: z.int().default(20) }), showBackfills));
  examples(list, [['millrace backfills shop/daily', 'with the progress of each']]);
}

function addCancel(backfill: Command, io: Io): void {
  const cancel = backfill
    .command('cancel')
    .description('Cancel a backfill: it stops firing, its queued runs are cancelled, running runs finish.')
    .argument('<backfill>', 'its UUID or its name, as `millrace backfills` lists them')
    .action(verb(io, noOptions, cancelBackfill));
  examples(cancel, [
    ['millrace backfill cancel 01890a5d-…', 'the rest of it'],
    ['millrace backfill cancel january', 'the one made with --name january'],
  ]);
}

async function makeBackfill(session: Session, [reference = '']: readonly string[], options: Flags): Promise<void> {
  const body = makeRequestBody(options);
  const server = await session.connect();
  const id = await findJob(server, reference);
  const made = await server.tenant('POST /api/jobs/{id}/backfill', { params: { id }, body });
  if ('dry_run' in made) {
    showPreview(session, made);
    return;
  }
  session.out.note(`${count(made.instants.total, 'instant')}, backfill ${made.id}`);
  if (!options.wait) {
    session.out.answer(made, () => session.out.line(made.id));
    return;
  }
  showOutcome(session, await followBackfill(session, server, made.id));
}

function makeRequestBody(options: Flags) {
  const { first, last, order, priority: rank, name } = options;
  if (first === undefined || last === undefined) throw new UsageError('a backfill needs --first and --last');
  return {
    first: checkInstant(first),
    last: checkInstant(last),
    triggers: options.trigger,
    order,
    priority: rank,
    only: options.missing ? ('missing' as const) : undefined,
    name,
    dry_run: options.dryRun,
    limit: maxPreviewItems,
  };
}

interface Preview {
  readonly instants: { readonly total: number };
  readonly items: readonly { readonly instant: string; readonly triggers: readonly string[] }[];
  readonly next: string | null;
}

function showPreview({ out }: Session, preview: Preview): void {
  const { items, instants, next } = preview;
  out.answer(preview, () => {
    if (items.length === 0) return;
    out.table(
      [{ title: 'INSTANT' }, { title: 'TRIGGERS', flexible: true }],
      items.map((item) => [showTime(item.instant), item.triggers.join(', ')]),
    );
  });
  const more = next === null ? '' : `; the list continues at ${showTime(next)}`;
  out.note(`${count(instants.total, 'instant')} would fire${more}`);
}

function showOutcome({ out }: Session, backfill: Backfill): void {
  out.answer(backfill, () => out.line(`${backfill.id} ${backfill.state}`));
  const { failure, timeout, error, cancelled } = backfill.runs;
  if (backfill.state !== 'done' || failure + timeout + error + cancelled > 0) throw new Ended(exitCodes.failed);
}

async function cancelBackfill(session: Session, [reference = '']: readonly string[]): Promise<void> {
  const server = await session.connect();
  const id = isId(reference) ? reference : await findNamed(server, reference);
  const before = await fetchBackfill(server, id);
  const answer = await server.tenant('POST /api/backfills/{id}/cancel', { params: { id } });
  const done = before.state === 'running' ? '' : 'it had already ended; ';
  session.out.answer(answer, () => session.out.line(`${done}${progressOf(answer)}`));
}

/** Finds a backfill by name. If two jobs have backfills of that name, the UUID is required. */
async function findNamed(server: Server, name: string): Promise<string> {
  const named = (await listBackfills(server, undefined, maxListed)).filter((each) => each.name === name);
  const [found, ...others] = named;
  if (found === undefined) throw new MillraceError('not_found', `backfill not found: ${name}`);
  if (others.length === 0) return found.id;
  const ids = named.map(({ id, job }) => `${id} (${job.project}/${job.name})`).join(', ');
  throw new UsageError(`${count(named.length, 'backfill')} are called ${name}; give the UUID: ${ids}`);
}

async function showBackfills(
  session: Session,
  [reference]: readonly string[],
  { limit }: { limit: number },
): Promise<void> {
  const server = await session.connect();
  const job = reference === undefined ? undefined : await findJob(server, reference);
  const backfills = await listBackfills(server, job, limit);
  session.out.answer(backfills, () => {
    if (backfills.length === 0) return session.out.note('no backfills');
    session.out.table(
      [
        { title: 'BACKFILL' },
        { title: 'STATE' },
        { title: 'JOB', flexible: true },
        { title: 'FIRST' },
        { title: 'LAST' },
        { title: 'INSTANTS FIRED', align: 'right' },
        { title: 'MADE' },
        { title: 'NAME', flexible: true },
      ],
      backfills.map((each) => [
        each.id,
        { text: each.state, style: stateStyle(each.state) },
        `${each.job.project}/${each.job.name}`,
        showTime(each.first),
        showTime(each.last),
        `${each.instants.fired}/${each.instants.total}`,
        showTime(each.created_at),
        each.name,
      ]),
    );
  });
}
