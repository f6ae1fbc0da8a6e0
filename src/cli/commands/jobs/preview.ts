/** `millrace preview`: shows when the triggers of a job will fire next. */
import type { Command } from 'commander';
import { z } from 'zod';
import { examples, integer } from '../../session/flags.ts';
import type { Io } from '../../session/io.ts';
import { jobArgument } from './job-commands.ts';
import { showTime } from '../../print/output.ts';
import { checkInstant, findJob, findTrigger } from '../../session/references.ts';
import type { Server } from '../../session/server.ts';
import { type Session, verb } from '../../session/session.ts';

const flags = z.object({ count: z.int().default(10), after: z.string().optional() });

export function addPreview(program: Command, io: Io): void {
  const preview = program
    .command('preview')
    .description('Show when the triggers of a job will fire next.')
    .argument(...jobArgument)
    .argument('[trigger]', 'only this trigger, by name or UUID')
    .option('--count <n>', 'how many firings (10)', integer(1, 1000))
    .option('--after <instant>', 'only firings after this instant')
    .action(verb(io, flags, showPreview));
  examples(preview, [
    ['millrace preview shop/daily', 'the next ten of all its triggers'],
    ['millrace preview shop/daily night --count 3 --after 2030-03-30T00:00:00Z', 'around a change of clocks'],
  ]);
}

async function showPreview(session: Session, args: readonly string[], options: z.output<typeof flags>): Promise<void> {
  const [reference = '', trigger] = args;
  const query = { count: options.count, after: options.after === undefined ? undefined : checkInstant(options.after) };
  const server = await session.connect();
  const job = await findJob(server, reference);
  const previews = await Promise.all(
    (await triggersOf(server, job, trigger)).map((id) =>
      server.tenant('GET /api/triggers/{id}/preview', { params: { id }, query }),
    ),
  );
  const items = previews
    .flatMap(({ trigger_name, items: coming }) => coming.map((each) => ({ trigger: trigger_name, ...each })))
    .toSorted((a, b) => Date.parse(a.due) - Date.parse(b.due))
    .slice(0, options.count);
  const paused = previews.some((each) => each.paused);
  const { out } = session;
  out.answer({ paused, items }, () => {
    if (items.length === 0) return out.note('no further firings');
    out.table(
      [{ title: 'TRIGGER', flexible: true }, { title: 'INSTANT' }, { title: 'DUE' }, { title: 'LOCAL' }],
      items.map((item) => [item.trigger, showTime(item.instant), showTime(item.due), item.local]),
    );
  });
  if (paused) out.note('the job is paused: nothing fires before `millrace unpause`');
}

async function triggersOf(server: Server, job: string, trigger: string | undefined): Promise<string[]> {
  if (trigger !== undefined) return [await findTrigger(server, job, trigger)];
  const triggers = await server.tenant('GET /api/jobs/{id}/triggers', { params: { id: job } });
  return triggers.map((each) => each.trigger_id);
}
