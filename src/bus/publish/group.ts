/**
 * A group of requests as the arrays that `append_bus` takes, and the way back from its answer to one outcome for each request.
 *
 * 1. A claim is a pair of topic and publisher. Requests of the same publisher to the same topic share it.
 * 2. A mark is an `Idempotency-Key`, or the own id of an event. The mark of a request covers all its events.
 * 3. A group has each mark once. A request with a mark that the group has already must wait for the next group.
 */
import type { Posted } from '../../contract/bus.ts';
import type { EventDraft } from './event-rules.ts';
import { keyHash } from './key-hash.ts';
import { refuseClaimed, type ValidPost } from './read-post.ts';

interface Claim {
  readonly topic: string;
  readonly owner: ValidPost['owner'];
}

interface Mark {
  /** The number of its claim; 1 is the first of the group. */
  readonly claim: number;
  readonly key: string;
  /** The places of the first and the last event that it covers; 1 is the first of the group. */
  readonly first: number;
  readonly last: number;
  readonly digest: Buffer | null;
}

/** The numbers that were given to a mark when it was used before, and whether that was with another body. */
export interface KnownMark {
  readonly first: number;
  readonly last: number;
  readonly isOther: boolean;
}

/** The answer of `append_bus`. */
export interface Appended {
  /** For each claim the topic; 0: another publisher owns it. */
  readonly topicIds: readonly number[];
  /** The number before the first event of the group. */
  readonly base: number;
  /** The number of each event, 0 for one that was not stored; null: all were stored, in their order. */
  readonly numbers: readonly number[] | null;
  /** The marks that were known, by their index. */
  readonly known: ReadonlyMap<number, KnownMark>;
}

/** A request in a group: the places of its events, and its marks. */
export interface Placed {
  readonly post: ValidPost;
  readonly claim: number;
  readonly first: number;
  readonly last: number;
  /** The index of the mark of its `Idempotency-Key`. */
  readonly keyMark: number | undefined;
  /** The indexes of the marks of its events. */
  readonly idMarks: readonly number[];
}

export class Group {
  readonly claims: Claim[] = [];
  readonly marks: Mark[] = [];
  /** For each event its claim, the hash of its ordering key, its body without the end, and its target. */
  readonly claimOf: number[] = [];
  readonly hashes: number[] = [];
  readonly bodies: string[] = [];
  readonly targets: (string | null)[] = [];
  hasTargets = false;

  readonly #claimNumbers = new Map<string, number>();
  readonly #markTexts = new Set<string>();

  /** Adds a request; undefined: the group has one of its marks already. */
  add(
    post: ValidPost,
    render: (event: EventDraft) => string,
    targets: ReadonlyMap<string, string>,
  ): Placed | undefined {
    const claim = this.#claim(post);
    const key = post.key && `k${post.key.text}`;
    const ids = new Set(post.events.flatMap(({ id }) => (id === undefined ? [] : [`i${id}`])));
    const marks = key === undefined ? [...ids] : [...ids, key];
    if (marks.some((mark) => this.#markTexts.has(`${claim} ${mark}`))) return undefined;
    for (const mark of marks) this.#markTexts.add(`${claim} ${mark}`);
    const first = this.bodies.length + 1;
    const idMarks = this.#addEvents(post, claim, render, targets);
    const last = this.bodies.length;
    const keyMark = post.key && this.marks.push({ claim, key: key ?? '', first, last, digest: post.key.digest }) - 1;
    return { post, claim, first, last, keyMark, idMarks };
  }

  outcomeOf({ post, claim, first, last, keyMark, idMarks }: Placed, appended: Appended): Posted {
    const { topicIds, base, numbers, known } = appended;
    const { isBulk } = post;
    if (topicIds[claim - 1] === 0) return { refused: refuseClaimed(post.topic) };
    const before = keyMark === undefined ? undefined : known.get(keyMark);
    if (before?.isOther === true) return refuseReused();
    if (before !== undefined) return { first: `${before.first}`, last: `${before.last}`, isBulk, isRepeated: true };
    const numberOf = (place: number): string => `${numbers?.[place - 1] ?? base + place}`;
    const isRepeated = idMarks.length === last - first + 1 && idMarks.every((mark) => known.has(mark));
    return { first: numberOf(first), last: numberOf(last), isBulk, isRepeated };
  }

  #claim({ topic, owner }: ValidPost): number {
    const name = `${topic} ${owner.id}`;
    const known = this.#claimNumbers.get(name);
    if (known !== undefined) return known;
    const number = this.claims.push({ topic, owner });
    this.#claimNumbers.set(name, number);
    return number;
  }

  /** Of events with the same id in one request, only the first is added. Returns the indexes of their marks. */
  #addEvents(
    post: ValidPost,
    claim: number,
    render: (event: EventDraft) => string,
    targets: ReadonlyMap<string, string>,
  ): number[] {
    const idMarks: number[] = [];
    const seen = new Set<string>();
    for (const event of post.events) {
      const { id } = event;
      if (id !== undefined && seen.has(id)) continue;
      const target = event.target === undefined ? null : (targets.get(event.target) ?? null);
      this.hasTargets ||= target !== null;
      this.claimOf.push(claim);
      this.hashes.push(keyHash(event.key ?? event.url));
      this.targets.push(target);
      const place = this.bodies.push(render(event));
      if (id === undefined) continue;
      seen.add(id);
      idMarks.push(this.marks.push({ claim, key: `i${id}`, first: place, last: place, digest: null }) - 1);
    }
    return idMarks;
  }
}

function refuseReused(): Posted {
  const detail = 'this Idempotency-Key was used with another body in the last 24 hours; use a new key';
  return { refused: { status: 422, code: 'key_reused', detail } };
}
