/** Explains once why a run that a command waits for has been ready for 5 s and is not running. */
import type { RunItem } from '../../session/pages.ts';
import type { Server } from '../../session/server.ts';
import type { Session } from '../../session/session.ts';
import { whyRun } from './why.ts';
import { oneLine } from '../../print/width.ts';

const hintAfterMs = 5_000;

export function makeWaitingHint(session: Session, server: Server): (runs: readonly RunItem[]) => Promise<void> {
  const seenAt = new Map<string, number>();
  let isPrinted = false;
  return async (runs) => {
    const waiting = runs.filter((run) => run.state === 'active');
    for (const { id } of waiting) if (!seenAt.has(id)) seenAt.set(id, Date.now());
    const stuck = waiting.find(({ id }) => Date.now() - (seenAt.get(id) ?? 0) >= hintAfterMs);
    if (isPrinted || stuck === undefined) return;
    isPrinted = true;
    // ignore errors: the hint is optional
    const why = await whyRun(server, stuck.id).catch(() => undefined);
    if (why === undefined) return;
    session.out.note(oneLine(why.summary));
    if (why.next !== null) session.out.note(`  ${oneLine(why.next)}`);
  };
}
