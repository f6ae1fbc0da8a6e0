/** Waits until a backfill ends and prints its progress to stderr: on a terminal in one line that is overwritten. */
import { delayMs } from '../../../kernel/backoff.ts';
import { pause } from '../../../kernel/service.ts';
import { isTransient, patienceMs } from '../runs/follow-runs.ts';
import type { Server } from '../../session/server.ts';
import type { Session } from '../../session/session.ts';
import { truncate } from '../../print/width.ts';

export async function fetchBackfill(server: Server, id: string) {
  return server.tenant('GET /api/backfills/{id}', { params: { id } });
}

export type Backfill = Awaited<ReturnType<typeof fetchBackfill>>;

const polling = { firstMs: 200, capMs: 2_000, jitter: 0 };
/** Minimum time between two lines of progress without a terminal. An unchanged line is a sign of life. */
const progressEveryMs = 5_000;
const unchangedEveryMs = 60_000;

export async function followBackfill(session: Session, server: Server, id: string): Promise<Backfill> {
  const printProgress = makeProgressPrinter(session);
  let answeredAt = Date.now();
  for (let attempt = 0; ; attempt++) {
    session.signal.throwIfAborted();
    try {
      const backfill = await fetchBackfill(server, id);
      answeredAt = Date.now();
      const over = backfill.ended_at !== null;
      printProgress(progressOf(backfill), over);
      if (over) return backfill;
    } catch (error) {
      if (!isTransient(error) || Date.now() - answeredAt > patienceMs) throw error;
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

/** Counts queued and finished runs. Until the backfill ends, more may follow. */
function runsOf({ runs, runs_complete: complete, ended_at: endedAt }: Backfill): string {
  const { success, failure, timeout, error, cancelled, ...open } = runs;
  const failed = failure + timeout + error;
  const done = success + failed + cancelled;
  const all = Object.values(open).reduce((sum, n) => sum + n, done);
  if (all === 0) return '';
  const bad = formatCounts({ failed, cancelled });
  const title = endedAt === null ? 'runs so far' : 'runs';
  const least = complete ? '' : 'at least ';
  const ends = `${least}${done} of ${all} done${bad.length === 0 ? '' : ` (${bad.join(', ')})`}`;
  return `; ${title}: ${[ends, ...formatCounts(open)].join(', ')}`;
}

function formatCounts(counts: Readonly<Record<string, number>>): string[] {
  return Object.entries(counts).flatMap(([name, n]) => (n > 0 ? [`${n} ${name}`] : []));
}

type ProgressSession = Pick<Session, 'io' | 'out'>;

export function makeProgressPrinter(
  { io, out }: ProgressSession,
  now: () => number = Date.now,
): (text: string, last: boolean) => void {
  const terminal = io.stderr.isTTY === true;
  let printed = '';
  let printedAt = Number.NEGATIVE_INFINITY;
  return (text, last) => {
    if (terminal) {
      // a line that wraps could not be overwritten
      const shown = last ? text : truncate(text, (io.stderr.columns ?? Infinity) - 1);
      io.stderr.write(`\r\u001b[K${shown}${last ? '\n' : ''}`);
      return;
    }
    if (!last && now() - printedAt < (text === printed ? unchangedEveryMs : progressEveryMs)) return;
    out.note(text);
    printed = text;
    printedAt = now();
  };
}
