/**
 * The subscriptions of a tenant as of one revision of the bus: which event belongs to which reader. A pure function of the rows.
 *
 * The revision in force at an event's number decides, so the answer never changes for an event that was fanned out.
 */
import { type BusElement, type Filter, matches, parseFilter } from '../subscribers/filters.ts';
import { strandOf } from '../strand.ts';
import type { BusEvent, RevisionRow } from '../store.ts';

export interface Revision {
  readonly fromSeq: number;
  readonly originSeq: number;
  readonly version: number;
  readonly topics: ReadonlySet<number>;
  readonly filter: Filter | null;
  readonly maxEvents: number;
  readonly maxBytes: number;
  readonly windowMs: number;
  readonly quiet: boolean;
  readonly strands: number;
  /** The last number up to this revision at which the number of strands changed; -1: it never did. */
  readonly barrier: number;
}

export interface Subscription {
  readonly subscriber: string;
  /** Oldest first. */
  readonly revisions: readonly Revision[];
}

export class Subscriptions {
  readonly revision: number;
  readonly #bySubscriber = new Map<string, Subscription>();
  readonly #byTopic = new Map<number, Subscription[]>();

  constructor(revision: number, rows: readonly RevisionRow[]) {
    this.revision = revision;
    const revisions = new Map<string, Revision[]>();
    for (const row of rows) {
      const list = revisions.get(row.subscriber) ?? [];
      list.push(makeRevision(row, list.at(-1)));
      revisions.set(row.subscriber, list);
    }
    for (const [subscriber, list] of revisions) this.#add({ subscriber, revisions: list });
  }

  #add(subscription: Subscription): void {
    this.#bySubscriber.set(subscription.subscriber, subscription);
    const topics = new Set(subscription.revisions.flatMap((revision) => [...revision.topics]));
    for (const topic of topics) {
      const list = this.#byTopic.get(topic);
      if (list === undefined) this.#byTopic.set(topic, [subscription]);
      else list.push(subscription);
    }
  }

  of(subscriber: string): Subscription | undefined {
    return this.#bySubscriber.get(subscriber);
  }

  /** Subscriptions that have had the topic in any of their revisions. */
  ofTopic(topicId: number): readonly Subscription[] {
    return this.#byTopic.get(topicId) ?? [];
  }
}

function makeRevision(row: RevisionRow, before: Revision | undefined): Revision {
  const isChanged = before !== undefined && before.strands !== row.strands;
  return {
    ...row,
    topics: new Set(row.topics),
    filter: row.filter === null ? null : parseFilter(row.filter),
    barrier: isChanged ? row.fromSeq : (before?.barrier ?? -1),
  };
}

/** The revision in force at a number. */
export function revisionAt({ revisions }: Subscription, seq: number): Revision | undefined {
  for (let i = revisions.length - 1; i >= 0; i--) {
    const revision = revisions[i];
    if (revision !== undefined && revision.fromSeq < seq) return revision;
  }
  return undefined;
}

/** The event as filters read it, parsed when the first of them needs it. */
export function elementOf({ body }: BusEvent): () => BusElement {
  let element: BusElement | undefined;
  return () => (element ??= JSON.parse(body) as BusElement);
}

/** The revision by which an event belongs to the subscriber; undefined: it does not. */
export function revisionFor(
  subscription: Subscription,
  event: BusEvent,
  element = elementOf(event),
): Revision | undefined {
  const revision = revisionAt(subscription, event.seq);
  return revision !== undefined && admits(revision, subscription.subscriber, event, element) ? revision : undefined;
}

/** Whether a revision admits an event, whatever its number. */
function admits(
  { topics, filter }: Revision,
  subscriber: string,
  { topicId, target }: BusEvent,
  element: () => BusElement,
): boolean {
  if (!topics.has(topicId)) return false;
  if (target !== null && target !== subscriber) return false;
  return filter === null || matches(filter, element());
}

export function strandFor(revision: Revision, event: BusEvent): number {
  return strandOf(event.keyHash, revision.strands);
}

/** All topics of the revisions that are in force after a number. */
export function topicsAfter({ revisions }: Subscription, seq: number): number[] {
  const last = revisions.findLastIndex((revision) => revision.fromSeq <= seq);
  return [...new Set(revisions.slice(Math.max(0, last)).flatMap((revision) => [...revision.topics]))];
}
