/** Rows of the bus's tables, and what couriers make of them. */
import type { BusEvent, BusState, HeldReader, LoadedReader, Receiver, RevisionRow } from '../store.ts';

export type EventRow = {
  readonly seq: number;
  readonly topic_id: number | null;
  readonly key_hash: number;
  readonly target: string | null;
  readonly at: Date;
  readonly body: string;
};

export function toEvent({ seq, topic_id, key_hash, target, at, body }: EventRow): BusEvent {
  return {
    seq,
    topicId: topic_id ?? 0,
    keyHash: key_hash,
    target,
    atMs: at.getTime(),
    body,
    bytes: Buffer.byteLength(body),
  };
}

export type SubscriptionRow = BusState & {
  readonly subscriber_id: string | null;
  readonly from_seq: number;
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
