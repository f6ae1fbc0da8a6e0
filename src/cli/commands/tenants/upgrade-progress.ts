/** Prints the sessions whose locks an upgrade waits for, while the upgrade is running. */
import { z } from 'zod';
import { pause } from '../../../kernel/service.ts';
import type { Server } from '../../session/server.ts';
import type { Session } from '../../session/session.ts';

/** Interval of the checks. A shorter upgrade prints nothing. */
const checkEveryMs = 2_000;

const waiting = z.object({
  advice: z.string(),
  facts: z.object({ blockers: z.array(z.object({ what: z.string() })) }),
});

export interface Upgrading {
  readonly session: Session;
  readonly server: Server;
  readonly name: string;
}

/** Returns the result of the call, and prints notes until it is settled. */
export async function reportWaitsDuring<T>(upgrading: Upgrading, call: Promise<T>): Promise<T> {
  const over = new AbortController();
  void reportProgress(upgrading, over.signal);
  try {
    return await call;
  } finally {
    over.abort();
  }
}

async function reportProgress({ session, server, name }: Upgrading, signal: AbortSignal): Promise<void> {
  let printed = '';
  for (;;) {
    await pause(checkEveryMs, signal);
    if (signal.aborted) return;
    const advice = await findWaitAdvice(server, name);
    if (advice === undefined || advice === printed || signal.aborted) continue;
    session.out.note(advice);
    printed = advice;
  }
}

/** Returns undefined unless the upgrade waits for the locks of a session. */
async function findWaitAdvice(server: Server, name: string): Promise<string | undefined> {
  const call = server.gateway('GET /api/explain/tenant/{name}', { params: { name } });
  // ignored: only a failure of the upgrade itself matters
  const { success, data } = waiting.safeParse(await call.catch(() => undefined));
  return success && data.facts.blockers.some(({ what }) => what === 'holder') ? data.advice : undefined;
}
