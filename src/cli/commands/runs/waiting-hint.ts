/** For those who wait: once, when a run has been ready for a while and nobody takes it, why that is. */
import type { RunItem } from '../../session/pages.ts';
import type { Server } from '../../session/server.ts';
import type { Session } from '../../session/session.ts';
import { whyRun } from './why.ts';
import { oneLine } from '../../print/width.ts';

const patienceMs = 5_000;

export function makeWaitingHint(session: Session, server: Server): (runs: readonly RunItem[]) => Promise<void> {
  const seenAt = new Map<string, number>();
  let said = false;
  return async (runs) => {
    const waiting = runs.filter((run) => run.state === 'active');
    for (const { id } of waiting) if (!seenAt.has(id)) seenAt.set(id, Date.now());
    const stuck = waiting.find(({ id }) => Date.now() - (seenAt.get(id) ?? 0) >= patienceMs);
    if (said || stuck === undefined) return;
    said = true;
    // only a courtesy: whatever is wrong with it is no reason to stop waiting
    const why = await whyRun(server, stuck.id).catch(() => undefined);
    if (why === undefined) return;
    session.out.note(oneLine(why.summary));
    if (why.next !== null) session.out.note(`  ${oneLine(why.next)}`);
  };
}
