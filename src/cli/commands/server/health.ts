/**
 * `millrace health`: the answer of `/healthz` as an exit code, for health checks of containers. It needs no key. A default
 * tenant that a person has stopped is no fault: a restart would not start it.
 */
import { Ended, exitCodes } from '../../session/exit.ts';
import type { Session } from '../../session/session.ts';
import { fetchHealth } from './status.ts';

export async function showHealth(session: Session): Promise<void> {
  const server = await session.connect();
  const { ok, code, reason } = await fetchHealth(server);
  const works = ok || code === 'tenant_stopped';
  session.out.answer({ ok: works, reason }, () => {
    session.out.line(works ? 'ok' : 'not ok');
    if (reason !== null) session.out.note(reason);
  });
  if (!works) throw new Ended(exitCodes.failed);
}
