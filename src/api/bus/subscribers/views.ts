/** Renders subscribers for the wire. A user name for deliveries is shown only to its owner. */
import type { CallAnswer } from '../../../http/client.ts';
import type { ApiContext } from '../../context.ts';
import { subscriberNotFound } from '../../../bus/subscribers/subscribe.ts';
import type { subscriberEndpoints } from './endpoints.ts';
import { type DetailRow, type ListedRow, readDetail, type ReaderRow, readReaders } from './queries.ts';

type Endpoints = typeof subscriberEndpoints;
export type SubscriberDetail = CallAnswer<Endpoints['GET /bus/subscriber']>;

export function renderListed(ctx: ApiContext, row: ListedRow, identity: string | undefined) {
  const { id, subscriber, callback, max_events, timeout, topics, kind, state, reason, health } = row;
  return {
    subscriber,
    uuid: row.identity === identity ? decryptCredential(ctx, row.credential) : null,
    callback,
    max_events,
    timeout,
    topics,
    events: { sent: row.sent, queued: row.queued, oldest: row.oldest?.toISOString() ?? null },
    id,
    kind,
    state,
    reason,
    health,
    failing_since: row.failing_since?.toISOString() ?? null,
    next_attempt_at: row.next_attempt_at?.toISOString() ?? null,
  };
}

export function decryptCredential(ctx: ApiContext, sealed: Buffer | null): string | null {
  return sealed === null ? null : ctx.secrets.decrypt(sealed).toString();
}

const errandStates = { s: 'scheduled', r: 'ready', p: 'pending', x: 'poisoned' } as const;

function renderReader(row: ReaderRow) {
  const { strand, queued, attempts, sent } = row;
  return {
    strand,
    position: String(row.pos),
    queued,
    oldest: row.oldest_at?.toISOString() ?? null,
    attempts,
    sent,
    errand: row.errand && errandStates[row.errand],
    next_attempt_at: row.run_at?.toISOString() ?? null,
    leased_until: row.leased_until?.toISOString() ?? null,
  };
}

function renderDetail(ctx: ApiContext, row: DetailRow, readers: readonly ReaderRow[], identity: string | undefined) {
  const { filter, max_bytes, quiet, ordering, strands, rate, max_attempts, max_age, request_timeout } = row;
  return {
    ...renderListed(ctx, row, identity),
    filter,
    max_bytes,
    quiet,
    ordering,
    strands,
    rate,
    max_attempts,
    max_age,
    request_timeout,
    secrets: row.secrets,
    owner: row.identity,
    created_at: row.created_at.toISOString(),
    last_attempted_at: row.last_attempted_at?.toISOString() ?? null,
    dead_letters: row.dead_letters,
    dropped: row.dropped && { ...row.dropped, at: new Date(row.dropped.at).toISOString() },
    readers: readers.map(renderReader),
  };
}

/** `identity`: the caller's, who sees the user name if the subscriber is its own. */
export async function showSubscriber(
  ctx: ApiContext,
  id: string,
  identity: string | undefined,
): Promise<SubscriberDetail> {
  const [row, readers] = await Promise.all([readDetail(ctx.db, id), readReaders(ctx.db, id)]);
  if (row === undefined) throw subscriberNotFound();
  return renderDetail(ctx, row, readers, identity);
}
