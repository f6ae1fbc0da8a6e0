/** Rows of the bus's tables, and what couriers make of them. */
import type { BusEvent, BusState, HeldReader, LoadedReader, Receiver, RevisionRow } from '../store.ts';

/** A page of the log: a list for each column. All are null if there is no event. */
export type PageRow = {
  readonly numbers: readonly number[] | null;
  readonly topics: readonly number[] | null;
  readonly hashes: readonly number[] | null;
  /** Null: no event has a target. */
  readonly targets: readonly (string | null)[] | null;
  readonly times: readonly number[] | null;
  /** Separated by a control character, which no JSON text contains. */
  readonly bodies: string | null;
};

const bodySeparator = '\x01';
/**
 * A body that is cut out of a page keeps the whole page in memory. A receiver that hangs keeps its batch, so with 256 of them this is
 * at most 64 MiB. Bodies of larger pages are copied.
 */
const maxSharedLength = 256 * 1024;

export function toEvents({ numbers, topics, hashes, targets, times, bodies }: PageRow): BusEvent[] {
  if (numbers === null || bodies === null) return [];
  const isShared = bodies.length <= maxSharedLength;
  return bodies.split(bodySeparator).map((part, i) => {
    const body = isShared ? part : copyOf(part);
    return {
      seq: numbers[i] ?? 0,
      topicId: topics?.[i] ?? 0,
      keyHash: hashes?.[i] ?? 0,
      target: targets?.[i] ?? null,
      atMs: times?.[i] ?? 0,
      body,
      bytes: Buffer.byteLength(body),
    };
  });
}

function copyOf(text: string): string {
  return Buffer.from(text).toString();
}

export type SubscriptionRow = BusState & {
  readonly subscriber_id: string | null;
  readonly from_seq: number;
  readonly origin_seq: number;
  readonly version: number;
  readonly topics: number[];
  readonly filter: unknown;
  readonly max_events: number;
  readonly max_bytes: number;
  readonly window_ms: number;
  readonly quiet: boolean;
  readonly strands: number;
};

/** Without a subscription there is one row, which has only the state. */
export function toRevisions(rows: readonly SubscriptionRow[]): RevisionRow[] {
  return rows.flatMap((row) =>
    row.subscriber_id === null
      ? []
      : {
          subscriber: row.subscriber_id,
          fromSeq: row.from_seq,
          originSeq: row.origin_seq,
          version: row.version,
          topics: row.topics,
          filter: row.filter,
          maxEvents: row.max_events,
          maxBytes: row.max_bytes,
          windowMs: row.window_ms,
          quiet: row.quiet,
          strands: row.strands,
        },
  );
}

export type ReceiverRow = {
  readonly name: string;
  readonly is_active: boolean;
  readonly callback: string | null;
  readonly credential: Buffer | null;
  readonly secrets: Buffer[];
  readonly health: number;
  readonly last_delivered_at: Date | null;
  readonly rate: number | null;
  readonly max_attempts: number | null;
  readonly max_age_ms: number | null;
  readonly request_ms: number | null;
};

export function toReceiver(row: ReceiverRow): Receiver {
  return {
    name: row.name,
    isActive: row.is_active,
    callback: row.callback ?? '',
    credential: row.credential,
    secrets: row.secrets,
    health: row.health,
    lastDeliveredAtMs: row.last_delivered_at?.getTime() ?? null,
    rate: row.rate,
    maxAttempts: row.max_attempts,
    maxAgeMs: row.max_age_ms,
    requestMs: row.request_ms,
  };
}

export type ReaderRow = BusState &
  ReceiverRow & {
    readonly n: number;
    readonly pos: number;
    readonly queued: number;
    readonly batch_end: number | null;
    readonly attempts: number;
    readonly failures: number;
    readonly first_failed_at: Date | null;
    readonly is_behind_other: boolean;
  };

export function toReader(row: ReaderRow, held: HeldReader): LoadedReader {
  return {
    ...held,
    pos: row.pos,
    queued: row.queued,
    batchEnd: row.batch_end,
    attempts: row.attempts,
    failures: row.failures,
    firstFailedAtMs: row.first_failed_at?.getTime() ?? null,
    isBehindOther: row.is_behind_other,
    state: { fanned: row.fanned, revision: row.revision },
    receiver: toReceiver(row),
  };
}
