/**
 * Follows the log of a run to its end. After a lost connection it resumes without a gap or a repetition: the written part of a
 * log never changes, so the bytes that were already printed are skipped.
 */
import { MillraceError } from '../../../errors.ts';
import { delayMs, reconnect } from '../../../kernel/backoff.ts';
import { pause } from '../../../kernel/service.ts';
import { isTransient, patienceMs } from './follow-runs.ts';
import { chunksOf } from '../../print/lines.ts';
import type { Server } from '../../session/server.ts';
import type { Session } from '../../session/session.ts';

/** The first connection must succeed. Later ones are retried for `patienceMs`, the time of a restart. */
export async function* followLog(session: Session, server: Server, run: string): AsyncGenerator<Uint8Array> {
  const open = (): ReturnType<Server['stream']> =>
    server.stream(`/api/runs/${run}/logs`, { query: { follow: 'true' } });
  let response: Awaited<ReturnType<typeof open>> | undefined = await open();
  let shown = 0;
  let answeredAt = Date.now();
  for (let attempt = 0; ; attempt++) {
    if (response) {
      let passed = 0;
      for await (const chunk of chunksOf(response)) {
        const fresh = chunk.subarray(Math.max(0, shown - passed));
        passed += chunk.length;
        shown += fresh.length;
        if (fresh.length > 0) yield fresh;
      }
      if (response.complete) return;
      session.signal.throwIfAborted();
      session.out.note('connection lost; reconnecting');
      answeredAt = Date.now();
      attempt = 0;
    }
    await pause(delayMs(reconnect, attempt), session.signal);
    session.signal.throwIfAborted();
    response = await open().catch((error: unknown) => {
      if (!isTransient(error)) throw error;
      if (Date.now() - answeredAt <= patienceMs) return undefined;
      throw new MillraceError('unreachable', 'connection lost; the log may be incomplete', { cause: error });
    });
  }
}
