/** Revisions of subscriptions: what a subscriber receives, from an event's number on. */
import { MillraceError } from '../../errors.ts';
import { type Db, sql } from '../../kernel/sql.ts';

/** The content of a revision. */
export interface Terms {
  readonly topics: readonly number[];
  readonly filter: Readonly<Record<string, unknown>> | null;
  readonly max_events: number;
  readonly max_bytes: number;
  readonly window_ms: number;
  readonly quiet: boolean;
  readonly strands: number;
  readonly ordering: 'subscriber' | 'key';
}

export const defaultTerms: Terms = {
  topics: [],
  filter: null,
  max_events: 100,
  max_bytes: 1024 * 1024,
  window_ms: 500,
  quiet: false,
  strands: 1,
  ordering: 'subscriber',
};

/** The newest revision. */
export async function currentTerms(db: Db, subscriber: string): Promise<Terms | undefined> {
  return db.maybeOne<Terms & Record<string, unknown>>(sql`
    select topics, filter, max_events, max_bytes, window_ms, quiet, strands, ordering
      from subscription
     where subscriber_id = ${subscriber}
     order by from_seq desc
     limit 1`);
}

/**
 * What all subscriptions of a tenant may take, with revisions that queued events still need. Couriers serve all tenants and keep
 * the subscriptions in memory, where a filter takes some thirty times as much as its text.
 */
const maxTermsBytes = 16 * 1024 * 1024;
const termsWeight = { revision: 1_000, topic: 64, filterChar: 4 } as const;

/** Throws if the subscriptions of the tenant are larger than that. */
export async function checkTermsSize(tx: Db): Promise<void> {
  const { revision, topic, filterChar } = termsWeight;
  const { bytes } = await tx.one<{ bytes: number }>(sql`
    select coalesce(sum(
             ${revision}::integer + ${topic}::integer * cardinality(topics)
             + ${filterChar}::integer * coalesce(octet_length(filter::text), 0)), 0)::float8 as bytes
      from subscription`);
  if (bytes <= maxTermsBytes) return;
  const remedy = 'deliver queued events or remove subscribers';
  throw new MillraceError('conflict', `the subscriptions of this tenant are too large: ${remedy}`);
}

/** Writes a revision, as the last step of a transaction that has bumped the state's revision. Returns the number it begins after. */
export async function writeRevision(tx: Db, subscriber: string, terms: Terms): Promise<number> {
  const row = await tx.one<{ head: number }>(sql`
    select revise_subscription(
      ${subscriber}::uuid, ${terms.topics}::integer[], ${terms.filter}::jsonb, ${terms.max_events}::integer,
      ${terms.max_bytes}::integer, ${terms.window_ms}::integer, ${terms.quiet}::boolean, ${terms.strands}::smallint,
      ${terms.ordering}::text) as head`);
  return row.head;
}

export function isSameTerms(a: Terms, b: Terms): boolean {
  return canonical(a) === canonical(b);
}

/** The database orders the keys of a filter, so its text cannot be compared directly. */
function canonical({ topics, filter, ...limits }: Terms): string {
  const { max_events, max_bytes, window_ms, quiet, strands, ordering } = limits;
  const plain = [max_events, max_bytes, window_ms, quiet, strands, ordering];
  return JSON.stringify([topics.toSorted((x, y) => x - y), sortKeys(filter), plain]);
}

function sortKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortKeys);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(([key, inner]): [string, unknown] => [key, sortKeys(inner)]);
  return entries.toSorted(([a], [b]) => (a < b ? -1 : 1));
}
