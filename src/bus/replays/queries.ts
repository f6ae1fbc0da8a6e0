/** Statements about replays at work. Writes name the worker and the lease, and the position from which they move. */
import { type Db, sql } from '../../kernel/sql.ts';
import { replayKey } from '../errand-keys.ts';
import { type ReceiverRow, toReceiver } from '../postgres/rows.ts';
import type { DeadLetter, Receiver, RevisionRow } from '../store.ts';

export interface HeldReplay {
  readonly replay: string;
  readonly worker: string;
  readonly lease: number;
}

export interface LoadedReplay {
  readonly subscriber: string;
  readonly state: string;
  readonly from: number;
  readonly to: number;
  readonly pos: number;
  readonly batchEnd: number | null;
  readonly attempts: number;
  readonly onlyUndelivered: boolean;
  readonly receiver: Receiver;
  readonly kind: 'http' | 'pull';
  /** The subscriber's current revision; undefined: it has none. */
  readonly revision: RevisionRow | undefined;
}

/** The changes of a step. A member that is missing keeps its value, or is reset if the position moves. */
export interface ReplayStep {
  readonly from: number;
  readonly to: number;
  readonly sent?: number;
  readonly batchEnd?: number | null;
  readonly attempts?: number;
  readonly state?: 'running' | 'done' | 'failed';
  readonly runAtMs?: number;
  readonly reason?: string;
  /** The id of a dead letter that was accepted. */
  readonly accepted?: string;
  readonly refused?: DeadLetter;
}

/** A dead letter that can be sent. */
export interface Letter {
  readonly id: string;
  readonly batch: string;
  readonly first: number;
  readonly events: number;
  readonly body: string;
}

type LoadRow = ReceiverRow & {
  readonly subscriber_id: string;
  readonly state: string;
  readonly from_seq: number;
  readonly to_seq: number;
  readonly pos: number;
  readonly batch_end: number | null;
  readonly attempts: number;
  readonly only_undelivered: boolean;
  readonly kind: 'http' | 'pull';
  readonly revision_from: number | null;
  readonly origin_seq: number;
  readonly version: number;
  readonly topics: number[];
  readonly filter: unknown;
  readonly max_events: number;
  readonly max_bytes: number;
  readonly strands: number;
};

/** Undefined: the replay is gone, or the worker does not hold its errand. */
export async function loadReplay(db: Db, { replay, worker, lease }: HeldReplay): Promise<LoadedReplay | undefined> {
  const row = await db.maybeOne<LoadRow>(sql`
    select r.subscriber_id, r.state, r.from_seq, r.to_seq, r.pos, r.batch_end, r.attempts, r.only_undelivered,
           s.kind, s.name, s.state = 'active' and s.kind = 'http' as is_active, s.callback, s.credential, s.secrets, s.health,
           s.last_delivered_at, s.rate, s.max_attempts, s.max_age_ms, s.request_ms,
           c.from_seq as revision_from, c.origin_seq, c.version, c.topics, c.filter, c.max_events, c.max_bytes, c.strands
      from errand e
      join errand_hold h on h.lease = ${lease} and h.worker = ${worker}::uuid and h.queue = 'main' and e.id <@ h.ids
      join replay r on r.id = ${replay}
      join subscriber s on s.id = r.subscriber_id
      left join lateral (
        select * from subscription o where o.subscriber_id = r.subscriber_id order by o.from_seq desc limit 1
      ) as c on true
     where e.queue = 'main' and e.key = ${replayKey(replay)} and e.state = 'r'`);
  return row && toReplay(row);
}

function toReplay(row: LoadRow): LoadedReplay {
  const { subscriber_id: subscriber, revision_from: fromSeq, origin_seq: originSeq, version } = row;
  const { topics, filter, strands } = row;
  const limits = { maxEvents: row.max_events, maxBytes: row.max_bytes, windowMs: 0, quiet: false };
  return {
    subscriber,
    state: row.state,
    from: row.from_seq,
    to: row.to_seq,
    pos: row.pos,
    batchEnd: row.batch_end,
    attempts: row.attempts,
    onlyUndelivered: row.only_undelivered,
    kind: row.kind,
    receiver: toReceiver(row),
    revision:
      fromSeq === null ? undefined : { subscriber, fromSeq, originSeq, version, topics, filter, strands, ...limits },
  };
}

/** `held`: go on. `moved`: the position of the replay has changed. `over`: the errand is gone, waits, or belongs to another worker. */
export type StepResult = 'held' | 'moved' | 'over';

export async function settleReplay(
  db: Db,
  { replay, worker, lease }: HeldReplay,
  subscriber: string,
  step: ReplayStep,
  nowMs: number,
): Promise<StepResult> {
  const { refused: dead } = step;
  const at = new Date(nowMs);
  const letter = dead
    ? sql`row(
        ${dead.id}::uuid, ${subscriber}::uuid, ${dead.batch}::text, ${dead.first}::bigint, ${dead.last}::bigint,
        ${dead.events}::integer, ${dead.body}::text, ${dead.code}::text, ${dead.status}::integer, ${dead.attempts}::integer,
        null::timestamptz, ${at}::timestamptz)::dead_letter`
    : sql`null::dead_letter`;
  const row = await db.one<{ result: StepResult }>(sql`
    select settle_replay(
      ${worker}::uuid, ${replay}::uuid, ${lease}::integer, ${step.from}::bigint, ${step.to}::bigint, ${step.sent ?? 0}::integer,
      ${step.batchEnd ?? null}::bigint, ${step.attempts ?? 0}::integer, ${step.state ?? 'running'}::text,
      ${step.runAtMs === undefined ? null : new Date(step.runAtMs)}::timestamptz, ${step.reason ?? null}::text,
      ${step.accepted ?? null}::uuid, ${letter}, ${at}::timestamptz) as result`);
  return row.result;
}

/** The oldest dead letter inside a range that has its events. */
export function nextLetter(
  db: Db,
  subscriber: string,
  { after, to }: { readonly after: number; readonly to: number },
): Promise<Letter | undefined> {
  return db.maybeOne<Letter & object>(sql`
    select id, batch, first_seq as first, events, body
      from dead_letter
     where subscriber_id = ${subscriber} and first_seq > ${after} and last_seq <= ${to} and body is not null
     order by first_seq, id
     limit 1`);
}
