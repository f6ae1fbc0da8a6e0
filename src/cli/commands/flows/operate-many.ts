/**
 * An operation on all executions of a filter: they are counted, the user confirms, and the server does it a page at a time.
 *
 * What is refused, such as a pause of an execution that has ended, is listed and stops nothing. The command exits with 1 then.
 */
import type { actions } from '../../../api/executions/operate/endpoints.ts';
import { count } from '../../print/output.ts';
import { oneLine } from '../../print/width.ts';
import { Ended, exitCodes } from '../../session/exit.ts';
import type { ExecutionFilter } from '../../session/pages.ts';
import type { Server } from '../../session/server.ts';
import type { Session } from '../../session/session.ts';
import { makeProgressPrinter } from '../backfills/follow-backfill.ts';

export type Action = (typeof actions)[number];

interface Operation {
  readonly filter: ExecutionFilter;
  readonly action: Action;
  readonly dryRun: boolean;
  readonly yes: boolean;
}

const pageSize = { counted: 1_000, done: 200 };

const emptyTotal = () => ({
  matched: 0,
  done: 0,
  accepted: 0,
  refused: 0,
  failures: [] as { readonly id: string; readonly code: string; readonly detail: string }[],
});
type Total = ReturnType<typeof emptyTotal>;

export async function operateMany(session: Session, { filter, action, dryRun, yes }: Operation): Promise<void> {
  const { out } = session;
  const server = await session.connect();
  const { matched } = await operate(server, { filter, action, dry_run: true, limit: pageSize.counted }, () => {});
  if (dryRun || matched === 0) return out.answer({ matched }, () => out.line(count(matched, 'execution')));
  await session.confirm(`${verbs[action]} ${count(matched, 'execution')}?`, yes);
  const printProgress = makeProgressPrinter(session);
  const total = await operate(server, { filter, action, dry_run: false, limit: pageSize.done }, (so) => {
    session.signal.throwIfAborted();
    printProgress(`${so.matched} of ${matched}`, false);
  });
  if (session.io.stderr.isTTY === true) printProgress('', false);
  out.answer(total, () => {
    out.line(formatTotal(total));
    for (const { id, detail } of total.failures) out.line(`  ${id}: ${oneLine(detail)}`);
  });
  if (total.refused > 0) throw new Ended(exitCodes.failed);
}

const verbs: Readonly<Record<Action, string>> = {
  cancel: 'Cancel',
  kill: 'Kill',
  pause: 'Pause',
  resume: 'Resume',
  retry: 'Try the incidents again of',
  skip: 'Skip the incidents of',
};

interface Wish {
  readonly filter: ExecutionFilter;
  readonly action: Action;
  readonly dry_run: boolean;
  readonly limit: number;
}

/** Goes on with `next` until no execution is left. */
async function operate(server: Server, wish: Wish, onPage: (total: Total) => void): Promise<Total> {
  const total = emptyTotal();
  let cursor: string | undefined;
  do {
    const page = await server.tenant('POST /api/executions/operate', { body: { ...wish, cursor } });
    for (const name of ['matched', 'done', 'accepted', 'refused'] as const) total[name] += page[name];
    total.failures.push(...page.failures);
    cursor = page.next ?? undefined;
    onPage(total);
  } while (cursor !== undefined);
  return total;
}

function formatTotal({ done, accepted, refused }: Total): string {
  const parts = [`${done} done`];
  if (accepted > 0) parts.push(`${accepted} accepted: a conductor will do it`);
  if (refused > 0) parts.push(`${refused} refused`);
  return parts.join(', ');
}
