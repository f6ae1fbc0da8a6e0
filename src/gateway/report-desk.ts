/**
 * Where reports arrive: whatever comes while a batch is being applied shares the next one, so cost per report falls as
 * load rises. Two batches per tenant are under way at most (measured: more are no faster); one that finds none under
 * way is cut in two, so that the children of a few hundred parents are not all made by one. The answer comes after the
 * commit.
 */
import type { Report } from '../contract/wire.ts';
import { isRefusal } from '../errors.ts';
import { groupBy } from '../kernel/group.ts';
import { type Loader, unlessGone } from '../launcher/loader.ts';

const batchesAtOnce = 2;
const largestBatch = 1_000;
/** What is worth a transaction of its own. */
const smallestPiece = 25;

interface Pending {
  readonly reports: readonly Report[];
  readonly done: () => void;
  readonly failed: (error: unknown) => void;
}

interface Queue {
  readonly pending: Pending[];
  working: number;
}

export class ReportDesk {
  readonly #loader: Loader;
  readonly #queues = new Map<string, Queue>();

  constructor(loader: Loader) {
    this.#loader = loader;
  }

  /** Returns once all are applied or known to be stale. Rejects when some could not be: the worker sends all again. */
  async report(reports: readonly Report[]): Promise<void> {
    const byTenant = groupBy(reports, (report) => report.tenant);
    await Promise.all(
      [...byTenant].flatMap(([tenant, some]) =>
        this.#pieces(tenant, some).map((piece) => this.#enqueue(tenant, piece)),
      ),
    );
  }

  /** Neighbours stay together: parents of one child that are counted in two batches have one wait for the other. */
  #pieces(tenant: string, reports: readonly Report[]): (readonly Report[])[] {
    if (this.#queues.has(tenant) || reports.length < batchesAtOnce * smallestPiece) return [reports];
    const half = Math.ceil(reports.length / 2);
    return [reports.slice(0, half), reports.slice(half)];
  }

  #enqueue(tenant: string, reports: readonly Report[]): Promise<void> {
    return new Promise((done, failed) => {
      const queue = this.#queues.get(tenant) ?? { pending: [], working: 0 };
      this.#queues.set(tenant, queue);
      queue.pending.push({ reports, done, failed });
      void this.#work(tenant, queue);
    });
  }

  async #work(tenant: string, queue: Queue): Promise<void> {
    if (queue.working >= batchesAtOnce) return;
    queue.working++;
    while (queue.pending.length > 0) await this.#apply(tenant, take(queue.pending));
    queue.working--;
    if (queue.working === 0) this.#queues.delete(tenant);
  }

  async #apply(tenant: string, batch: readonly Pending[]): Promise<void> {
    try {
      const open = await this.#loader.named(tenant).catch(unlessGone);
      const reports = batch.flatMap((pending) => pending.reports);
      await open?.engine.report(open.ctx, reports);
      for (const pending of batch) pending.done();
    } catch (error) {
      // one that PostgreSQL refuses must not take with it those that happen to share its batch
      if (batch.length > 1 && isRefusal(error)) for (const pending of batch) await this.#apply(tenant, [pending]);
      else for (const pending of batch) pending.failed(error);
    }
  }
}

function take(pending: Pending[]): Pending[] {
  let size = 0;
  const batch: Pending[] = [];
  while (pending[0] !== undefined && (batch.length === 0 || size + pending[0].reports.length <= largestBatch)) {
    const next = pending.shift();
    if (next === undefined) break;
    size += next.reports.length;
    batch.push(next);
  }
  return batch;
}
