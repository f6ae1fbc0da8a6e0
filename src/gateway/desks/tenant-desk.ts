/**
 * Queues work for many tenants. Each tenant has a queue of its own, so that none waits for another (I11). Items that arrive
 * while a tenant is busy share its next batch, so the cost per item falls as load rises.
 *
 * A caller waits for a limited time. An item that has not begun by then is removed from the queue, and may be sent again; an
 * item that has begun continues. So a hanging tenant accumulates nothing.
 */
import { isRefusal, MillraceError } from '../../errors.ts';
import { isolateRejected } from '../../kernel/isolate-rejected.ts';

export interface TenantDeskOptions<Item, Answer> {
  /** Returns one answer for each item, in order. */
  readonly apply: (tenant: string, items: readonly Item[]) => Promise<readonly Answer[]>;
  readonly sizeOf: (item: Item) => number;
  /** The maximum size of a batch of this tenant now. */
  readonly largestBatch: (tenant: string) => number;
  /** The maximum number of batches of one tenant at the same time. */
  readonly batchesAtOnce: number;
}

interface Pending<Item, Answer> {
  readonly item: Item;
  readonly done: (answer: Answer) => void;
  readonly failed: (error: unknown) => void;
}

interface Queue<Item, Answer> {
  readonly pending: Pending<Item, Answer>[];
  /** The workers on this queue, each with the start of its current batch. */
  readonly working: Set<{ sinceMs: number }>;
}

/** A batch without an answer after this time is abandoned: another may begin. */
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

  /** Rejects with the error of the work, or when the time is over. */
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

  /** An item that PostgreSQL rejects does not affect the other items of its batch. */
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
      // without effect on items that have an answer already
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
