/**
 * A run's log, followed to its end over lost connections without a gap and without a repetition: what is there does not
 * change any more, so the beginning that has been shown is passed over by its length.
 */
import { MillraceError } from '../../../errors.ts';
import { delayMs, reconnect } from '../../../kernel/backoff.ts';
import { pause } from '../../../kernel/service.ts';
import { isPassing, patienceMs } from './follow-runs.ts';
import { chunksOf } from '../../print/lines.ts';
import type { Server } from '../../session/server.ts';
import type { Session } from '../../session/session.ts';

/** The first connection must succeed; later ones are tried for as long as a restart may take. */
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
      session.out.note('the connection was lost; trying again');
      answeredAt = Date.now();
      attempt = 0;
    }
    await pause(delayMs(reconnect, attempt), session.signal);
    session.signal.throwIfAborted();
    response = await open().catch((error: unknown) => {
      if (!isPassing(error)) throw error;
      if (Date.now() - answeredAt <= patienceMs) return undefined;
      throw new MillraceError('unreachable', 'the connection was lost; the log may go on', { cause: error });
    });
  }
}
