/**
 * Work for many tenants, each of which has a queue of its own, so that none waits for another (I11). Whatever comes while
 * a tenant is busy shares its next batch, so cost per item falls as load rises.
 *
 * Whoever waits does so for a while only: what has not begun by then is taken out of the queue, and may be sent again;
 * what has begun goes on. So a tenant that stands still gathers nothing.
 */
import { isRefusal, MillraceError } from '../../errors.ts';
import { isolateRejected } from '../../kernel/isolate-rejected.ts';

export interface TenantDeskOptions<Item, Answer> {
  /** Answers one for each item, in their order. */
  readonly apply: (tenant: string, items: readonly Item[]) => Promise<readonly Answer[]>;
  readonly sizeOf: (item: Item) => number;
  /** Of this tenant, now. */
  readonly largestBatch: (tenant: string) => number;
  /** Of one tenant. */
  readonly batchesAtOnce: number;
}

interface Pending<Item, Answer> {
  readonly item: Item;
  readonly done: (answer: Answer) => void;
  readonly failed: (error: unknown) => void;
}

interface Queue<Item, Answer> {
  readonly pending: Pending<Item, Answer>[];
  /** Who works on it, and since when on their batch. */
  readonly working: Set<{ sinceMs: number }>;
}

/** A batch that has no answer for so long will have none: another may begin. */
const hopelessMs = 30_000;

export class TenantDesk<Item, Answer> {
  readonly #options: TenantDeskOptions<Item, Answer>;
  readonly #queues = new Map<string, Queue<Item, Answer>>();

  constructor(options: TenantDeskOptions<Item, Answer>) {
    this.#options = options;
  }

  isBusy(tenant: string): boolean {
    return this.#queues.has(tenant);
  }

  /** Rejects with what went wrong, or when the time is over. */
  give(tenant: string, item: Item, withinMs: number): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const queue = this.#queues.get(tenant) ?? { pending: [], working: new Set() };
      this.#queues.set(tenant, queue);
      const timer = setTimeout(() => {
        const at = queue.pending.indexOf(pending);
        if (at >= 0) queue.pending.splice(at, 1);
        reject(
          new MillraceError('tenant_unavailable', `tenant ${tenant} did not answer within ${Math.round(withinMs)} ms`),
        );
      }, withinMs);
      const pending: Pending<Item, Answer> = {
        item,
        done: (answer) => {
          clearTimeout(timer);
          resolve(answer);
        },
        failed: (error) => {
          clearTimeout(timer);
          reject(error instanceof Error ? error : new Error(String(error)));
        },
      };
      queue.pending.push(pending);
      void this.#work(tenant, queue);
    });
  }

  async #work(tenant: string, queue: Queue<Item, Answer>): Promise<void> {
    const { working, pending } = queue;
    for (const each of working) if (performance.now() - each.sinceMs > hopelessMs) working.delete(each);
    if (working.size >= this.#options.batchesAtOnce) return;
    const mine = { sinceMs: performance.now() };
    working.add(mine);
    while (pending.length > 0 && working.has(mine)) {
      mine.sinceMs = performance.now();
      await this.#apply(tenant, this.#take(tenant, pending));
    }
    working.delete(mine);
    if (working.size === 0 && this.#queues.get(tenant) === queue) this.#queues.delete(tenant);
  }

  /** An item that PostgreSQL rejects does not take with it those that happen to share its batch. */
  async #apply(tenant: string, batch: readonly Pending<Item, Answer>[]): Promise<void> {
    const write = async (some: readonly Pending<Item, Answer>[]): Promise<void> => {
      const items = some.map(({ item }) => item);
      const answers = await this.#options.apply(tenant, items);
      some.forEach((pending, i) => pending.done(answers[i] as Answer));
    };
    try {
      const rejected = await isolateRejected(batch, write, { isRejection: isRefusal });
      for (const [pending, error] of rejected) pending.failed(error);
    } catch (error) {
      // without effect on those that have their answer
      for (const pending of batch) pending.failed(error);
    }
  }

  #take(tenant: string, pending: Pending<Item, Answer>[]): Pending<Item, Answer>[] {
    const { sizeOf } = this.#options;
    const largestBatch = this.#options.largestBatch(tenant);
    let size = 0;
    let count = 0;
    for (const { item } of pending) {
      size += sizeOf(item);
      if (count > 0 && size > largestBatch) break;
      count++;
    }
    return pending.splice(0, count);
  }
}
