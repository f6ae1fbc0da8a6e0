/** Waits until a backfill is over, telling on stderr how far it has come: on a terminal in one line that changes. */
import { delayMs } from '../kernel/backoff.ts';
import { pause } from '../kernel/service.ts';
import { isPassing, patienceMs } from './follow-runs.ts';
import type { Server } from './server.ts';
import type { Session } from './session.ts';

export async function fetchBackfill(server: Server, id: string) {
  return server.tenant('GET /api/backfills/{id}', { params: { id } });
}

export type Backfill = Awaited<ReturnType<typeof fetchBackfill>>;

const polling = { firstMs: 200, capMs: 2_000, jitter: 0 };
/** Where lines stay, so many seconds apart are enough. */
const quietMs = 10_000;

export async function followBackfill(session: Session, server: Server, id: string): Promise<Backfill> {
  const tell = teller(session);
  let answeredAt = Date.now();
  for (let attempt = 0; ; attempt++) {
    session.signal.throwIfAborted();
    try {
      const backfill = await fetchBackfill(server, id);
      answeredAt = Date.now();
      const over = backfill.ended_at !== null;
      tell(progressOf(backfill), over);
      if (over) return backfill;
    } catch (error) {
      if (!isPassing(error) || Date.now() - answeredAt > patienceMs) throw error;
    }
    await pause(delayMs(polling, attempt), session.signal);
  }
}

/** `120 of 365 instants fired; 5 running, 100 success` */
export function progressOf({ state, instants, runs }: Backfill): string {
  const { total, fired, skipped } = instants;
  const left = skipped === 0 ? '' : `, ${skipped} skipped`;
  const counts = Object.entries(runs).flatMap(([name, n]) => (n > 0 ? [`${n} ${name}`] : []));
  const heading = state === 'running' ? '' : `${state}: `;
  return `${heading}${[`${fired} of ${total} instants fired${left}`, counts.join(', ')].filter(Boolean).join('; ')}`;
}

function teller({ io, out }: Session): (text: string, last: boolean) => void {
  const terminal = io.stderr.isTTY === true;
  let told = '';
  let toldAt = Number.NEGATIVE_INFINITY;
  return (text, last) => {
    if (terminal) {
      io.stderr.write(`\r\u001b[K${text}${last ? '\n' : ''}`);
      return;
    }
    if (!last && (text === told || Date.now() - toldAt < quietMs)) return;
    out.note(text);
    told = text;
    toldAt = Date.now();
  };
}
