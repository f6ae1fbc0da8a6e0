/** What somebody who has asked for an upgrade hears while it is under way: whose locks it waits for, if it does. */
import { z } from 'zod';
import { pause } from '../../../kernel/service.ts';
import type { Server } from '../../session/server.ts';
import type { Session } from '../../session/session.ts';

/** What is over sooner has nothing to tell. */
const lookMs = 2_000;

const waiting = z.object({
  advice: z.string(),
  facts: z.object({ blockers: z.array(z.object({ what: z.string() })) }),
});

export interface Upgrading {
  readonly session: Session;
  readonly server: Server;
  readonly name: string;
}

/** The same, with notes until it is settled. */
export async function tellingOfWaits<T>(upgrading: Upgrading, call: Promise<T>): Promise<T> {
  const over = new AbortController();
  void reportProgress(upgrading, over.signal);
  try {
    return await call;
  } finally {
    over.abort();
  }
}

async function reportProgress({ session, server, name }: Upgrading, signal: AbortSignal): Promise<void> {
  let told = '';
  for (;;) {
    await pause(lookMs, signal);
    if (signal.aborted) return;
    const now = await waitOf(server, name);
    if (now === undefined || now === told || signal.aborted) continue;
    session.out.note(now);
    told = now;
  }
}

/** Nothing, unless it waits for locks of somebody's. */
async function waitOf(server: Server, name: string): Promise<string | undefined> {
  const call = server.gateway('GET /api/explain/tenant/{name}', { params: { name } });
  // it is the upgrade whose failure counts
  const { success, data } = waiting.safeParse(await call.catch(() => undefined));
  return success && data.facts.blockers.some(({ what }) => what === 'holder') ? data.advice : undefined;
}
