/**
 * The place where events arrive. Requests that arrive while a group is being committed share the next one: one group of a tenant
 * is under way at a time, which measured faster than two. Floods have a pace while others are at work (`publish-pace.ts`).
 *
 * The number of waiting events is limited, so that a database that hangs does not fill the memory. Further requests are rejected
 * with 429.
 */
import type { Post, Posted } from '../../contract/bus.ts';
import { MillraceError } from '../../errors.ts';
import type { Loader } from '../../loader/loader.ts';
import type { BatchTurns } from '../claims/batch-turns.ts';
import { TenantDesk } from '../desks/tenant-desk.ts';
import { requireGroup } from '../routing/capabilities.ts';
import { PublishPace } from './publish-pace.ts';

const publishLimits = {
  /** Events of one commit. */
  group: 1_000,
  /** Events that wait in this process, of all tenants. */
  waiting: 20_000,
  /** How long a publisher waits. Routemaster's own client gives up after 5 s. */
  waitMs: 5_000,
  /** Bytes of a single event that count as one more. */
  bytesPerEvent: 1_024,
  /** Bytes of an array that count as one event, because it is not parsed here. */
  bytesPerBulkEvent: 128,
};

const openBracket = 0x5b;

export interface PublishDeskOptions {
  readonly loader: Loader;
  readonly turns: BatchTurns;
  readonly limits?: Partial<typeof publishLimits>;
}

export class PublishDesk {
  readonly #limits: typeof publishLimits;
  readonly #desk: TenantDesk<Post, Posted>;
  #waiting = 0;

  constructor({ loader, turns, limits }: PublishDeskOptions) {
    this.#limits = { ...publishLimits, ...limits };
    const pace = new PublishPace(turns);
    this.#desk = new TenantDesk({
      apply: (tenantId, posts) => {
        const events = posts.reduce((sum, post) => sum + this.#weigh(post), 0);
        return pace.run(tenantId, events, () =>
          loader.use(tenantId, async ({ engine, ctx, row }) =>
            requireGroup(engine, 'bus', row.name).publish(ctx, posts),
          ),
        );
      },
      sizeOf: (post) => this.#weigh(post),
      largestBatch: (tenantId) => Math.min(this.#limits.group, pace.maxGroup(tenantId)),
      batchesAtOnce: 1,
    });
  }

  /** Returns the outcome after the commit. */
  async post(tenantId: string, post: Post): Promise<Posted> {
    const events = this.#weigh(post);
    if (this.#waiting > 0 && this.#waiting + events > this.#limits.waiting)
      throw new MillraceError('too_many', `more than ${this.#limits.waiting} events wait to be stored; try again`, {
        headers: { 'retry-after': '1' },
      });
    this.#waiting += events;
    try {
      return await this.#desk.give(tenantId, post, this.#limits.waitMs);
    } finally {
      this.#waiting -= events;
    }
  }

  /** The number of events, estimated by the length: the engine parses them. */
  #weigh({ body }: Post): number {
    const { bytesPerEvent, bytesPerBulkEvent, group } = this.#limits;
    if (body[0] !== openBracket) return 1 + Math.floor(body.length / bytesPerEvent);
    return Math.min(group, Math.max(1, Math.floor(body.length / bytesPerBulkEvent)));
  }
}
