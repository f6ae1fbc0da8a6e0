/**
 * A publisher of the rivals. It does not always learn what became of a request, and then repeats it, even while the first one is
 * under way: with its `Idempotency-Key`, or with the ids of its events. A repetition must have the same numbers.
 */
import type { Post } from '../../src/contract/bus.ts';
import type { EngineContext } from '../../src/contract/context.ts';
import type { KeyCaller } from '../../src/contract/roles.ts';
import { publish } from '../../src/bus/publish/publish.ts';
import { newId } from '../../src/kernel/id.ts';
import { type Db, sql } from '../../src/kernel/sql.ts';
import type { Random } from '../simulation/random.ts';

const topicNames = ['apples', 'pears'] as const;

export interface StoredEvent {
  readonly seq: number;
  /** The index of its topic. */
  readonly topic: number;
  readonly key: string;
}

interface Draft {
  readonly topic: number;
  readonly keys: readonly string[];
  readonly post: Post;
}

const shop = newId();
const caller: KeyCaller = {
  kind: 'key',
  role: 'publisher',
  keyId: shop,
  identity: { id: shop, name: 'shop' },
  tenantId: null,
  tenant: null,
  actor: 'key:shop',
};

/** Creates the topics, and returns their ids. */
export async function makeTopics(db: Db): Promise<number[]> {
  const rows = await db.rows<{ id: number }>(sql`
    insert into bus_topic (name, owner_name, created_at)
    select n.name, '', ${new Date(0)} from unnest(${[...topicNames]}::text[]) with ordinality as n (name, n) order by n.n
    returning id`);
  return rows.map(({ id }) => id);
}

export class RivalsPublisher {
  readonly #ctx: EngineContext;
  readonly #random: Random;
  readonly #note: (fault: string) => void;
  #requests = 0;

  constructor(ctx: EngineContext, random: Random, note: (fault: string) => void) {
    this.#ctx = ctx;
    this.#random = random;
    this.#note = note;
  }

  /** Publishes a few requests in one group. Returns their events after the commit. */
  async publish(): Promise<StoredEvent[]> {
    const drafts = Array.from({ length: this.#random.int(1, 3) }, () => this.#draft());
    const first = this.#send(drafts);
    if (!this.#random.chance(0.3)) return this.#stored(drafts, await first);
    // the answer is lost after the commit, or before it
    if (this.#random.chance(0.5)) await first;
    const [before, again] = await Promise.all([first, this.#send(drafts)]);
    if (before.join() !== again.join()) this.#note('a repeated request has other numbers');
    return this.#stored(drafts, again);
  }

  #draft(): Draft {
    const random = this.#random;
    const topic = random.int(0, topicNames.length - 1);
    const request = this.#requests++;
    const keys = Array.from({ length: random.int(1, 6) }, () => `key ${random.int(0, 9)}`);
    const hasKey = random.chance(0.5);
    const events = keys.map((key, i) => ({
      type: 'update',
      url: `https://shop.example/${request}/${i}`,
      key,
      ...(hasKey ? {} : { id: `${request} ${i}` }),
    }));
    const body = Buffer.from(JSON.stringify(events));
    const post = { caller, topic: topicNames[topic] ?? '', body, key: hasKey ? `request ${request}` : null };
    return { topic, keys, post };
  }

  /** Returns the first number of each request. */
  async #send(drafts: readonly Draft[]): Promise<number[]> {
    const posted = await publish(
      this.#ctx,
      drafts.map(({ post }) => post),
    );
    return posted.map((outcome) => {
      if ('refused' in outcome) throw new Error(`publishing was refused: ${outcome.refused.detail}`);
      return Number(outcome.first);
    });
  }

  #stored(drafts: readonly Draft[], firsts: readonly number[]): StoredEvent[] {
    return drafts.flatMap(({ topic, keys }, n) => keys.map((key, i) => ({ seq: (firsts[n] ?? 0) + i, topic, key })));
  }
}
