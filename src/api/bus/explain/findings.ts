/** Findings about deliveries: a reason in words and data, and what the user can do. A message has no full stop. */
import { formatDuration } from '../../../kernel/text/duration.ts';
import type { deliveryReasonCodes } from './endpoints.ts';
import type { ReaderRow } from '../subscribers/queries.ts';

export interface Finding {
  readonly code: (typeof deliveryReasonCodes)[number];
  readonly message: string;
  readonly data: Record<string, unknown>;
  readonly next?: string;
}

export function finding(
  code: Finding['code'],
  message: string,
  data: Record<string, unknown> = {},
  next?: string,
): Finding {
  return next === undefined ? { code, message, data } : { code, message, data, next };
}

/** Explains the errand of a strand that has events. */
export function errandFinding(reader: ReaderRow, now: number): Finding {
  const { strand, errand, run_at, errand_reason, attempts } = reader;
  const data = { strand, attempts, next_attempt_at: run_at?.toISOString() ?? null, reason: errand_reason };
  switch (errand) {
    case 's':
      return scheduledFinding(run_at, attempts, data);
    case 'r':
      return finding('ready', 'the delivery is ready and waits for a courier', data);
    case 'p':
      return finding('under_way', 'a courier has it in hand', data);
    case 'x': {
      const why = errand_reason === null ? '' : `: ${errand_reason}`;
      return finding(
        'poisoned',
        `its errand was set aside after too many lost couriers${why}`,
        data,
        'millrace errands retry',
      );
    }
    case null:
    default:
      return finding(
        'ready',
        `it has no errand; a courier adds it within 30 s of ${new Date(now).toISOString()}`,
        data,
      );
  }
}

function scheduledFinding(runAt: Date | null, attempts: number, data: Record<string, unknown>): Finding {
  const at = runAt?.toISOString() ?? 'soon';
  if (attempts > 0) return finding('retry_scheduled', `attempt ${attempts + 1} follows at ${at}`, data);
  return finding('window_open', `its batch waits for more events until ${at}`, data);
}

export function formatLag(waiting: readonly ReaderRow[], queued: number, now: number): Finding {
  const oldest = waiting.flatMap(({ oldest_at }) => (oldest_at === null ? [] : [oldest_at.getTime()]));
  const ageMs = oldest.length === 0 ? null : Math.max(0, now - Math.min(...oldest));
  const positions = Object.fromEntries(waiting.map(({ strand, pos }) => [strand, String(pos)]));
  const age = ageMs === null ? '' : `, the oldest for ${formatDuration(Math.round(ageMs / 1_000) * 1_000)}`;
  const noun = queued === 1 ? 'event waits' : 'events wait';
  return finding('lag', `${queued} ${noun}${age}`, { queued, oldest_ms: ageMs, positions });
}
