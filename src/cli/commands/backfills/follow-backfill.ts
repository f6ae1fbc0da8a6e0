/** Waits until a backfill is over, telling on stderr how far it has come: on a terminal in one line that changes. */
import { delayMs } from '../../../kernel/backoff.ts';
import { pause } from '../../../kernel/service.ts';
import { isPassing, patienceMs } from '../runs/follow-runs.ts';
import type { Server } from '../../session/server.ts';
import type { Session } from '../../session/session.ts';
import { truncate } from '../../print/width.ts';

export async function fetchBackfill(server: Server, id: string) {
  return server.tenant('GET /api/backfills/{id}', { params: { id } });
}

export type Backfill = Awaited<ReturnType<typeof fetchBackfill>>;

const polling = { firstMs: 200, capMs: 2_000, jitter: 0 };
/** Where lines stay, so far apart is enough; the same line again only shows that we are still there. */
const quietMs = 5_000;
const sameQuietMs = 60_000;

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

/** `32 of 32 instants fired; runs so far: 120 of 320 done (3 failed), 195 ready, 5 running` */
export function progressOf(backfill: Backfill): string {
  const { total, fired, skipped } = backfill.instants;
  const left = skipped === 0 ? '' : `, ${skipped} skipped`;
  const heading = backfill.state === 'running' ? '' : `${backfill.state}: `;
  return `${heading}${fired} of ${total} instants fired${left}${runsOf(backfill)}`;
}

/** A run is known once it is queued: until the backfill is over, more may follow. */
function runsOf({ runs, runs_complete: complete, ended_at: endedAt }: Backfill): string {
  const { success, failure, timeout, error, cancelled, ...open } = runs;
  const failed = failure + timeout + error;
  const done = success + failed + cancelled;
  const all = Object.values(open).reduce((sum, n) => sum + n, done);
  if (all === 0) return '';
  const bad = worded({ failed, cancelled });
  const title = endedAt === null ? 'runs so far' : 'runs';
  const least = complete ? '' : 'at least ';
  const ends = `${least}${done} of ${all} done${bad.length === 0 ? '' : ` (${bad.join(', ')})`}`;
  return `; ${title}: ${[ends, ...worded(open)].join(', ')}`;
}

function worded(counts: Readonly<Record<string, number>>): string[] {
  return Object.entries(counts).flatMap(([name, n]) => (n > 0 ? [`${n} ${name}`] : []));
}

type Told = Pick<Session, 'io' | 'out'>;

export function teller({ io, out }: Told, now: () => number = Date.now): (text: string, last: boolean) => void {
  const terminal = io.stderr.isTTY === true;
  let told = '';
  let toldAt = Number.NEGATIVE_INFINITY;
  return (text, last) => {
    if (terminal) {
      // a line that wraps could not be written over
      const shown = last ? text : truncate(text, (io.stderr.columns ?? Infinity) - 1);
      io.stderr.write(`\r\u001b[K${shown}${last ? '\n' : ''}`);
      return;
    }
    if (!last && now() - toldAt < (text === told ? sameQuietMs : quietMs)) return;
    out.note(text);
    told = text;
    toldAt = now();
  };
}
