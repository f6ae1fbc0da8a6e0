/**
 * The orders that a host is carrying out: exactly those that name it.
 *
 * - The scheduler of an order that is gone or replaced is stopped. The newer order begins when that scheduler has ended.
 * - An order whose scheduler has ended by itself is not begun again.
 * - An order that was withdrawn before it was begun is reported as ended.
 */
import { newId } from '../kernel/id.ts';
import { within } from '../kernel/service.ts';
import type { PartHooks } from './failing-parts.ts';
import { type Reason, reasons } from '../control/reasons.ts';
import type { HostReport, Order, Orders } from './host-queries.ts';
import { type Ending, endingOf, stopped } from './singleton.ts';
import { Semaphore } from '../kernel/semaphore.ts';

export interface AttemptOptions {
  /** Carries out the order. */
  readonly run: (order: Order, hooks: PartHooks, signal: AbortSignal) => Promise<Ending>;
  readonly report: (report: HostReport) => void;
  /** An attempt has ended: there may be a newer order to begin. */
  readonly onEnd: (order: Order, ending: Ending) => void;
}

interface Attempt {
  readonly id: string;
  readonly order: Order;
  readonly abort: AbortController;
  readonly done: Promise<void>;
}

/** Schedulers that start at once. A slow start gives its place to another after `maxStartMs`. */
const maxStarting = 16;
const maxStartMs = 5_000;

export class Attempts {
  readonly #options: AttemptOptions;
  readonly #running = new Map<string, Attempt>();
  /** By tenant, the newest order that was carried out to its end. */
  readonly #over = new Map<string, number>();
  readonly #startPermits = new Semaphore(maxStarting);

  constructor(options: AttemptOptions) {
    this.#options = options;
  }

  /** The orders under way, one per tenant. */
  get running(): readonly { readonly tenantId: string; readonly id: string; readonly orderNo: number }[] {
    return [...this.#running].map(([tenantId, { id, order }]) => ({ tenantId, id, orderNo: order.orderNo }));
  }

  /** Begins orders that are new, and stops schedulers whose order is not in this list. Returns at once. */
  follow({ orders, withdrawn }: Orders): void {
    const wanted = new Map(orders.map((order) => [order.row.id, order]));
    const known = new Set([...orders, ...withdrawn].map(({ row }) => row.id));
    for (const [tenantId, { order, abort }] of this.#running) {
      if (wanted.get(tenantId)?.orderNo !== order.orderNo) abort.abort();
    }
    for (const tenantId of this.#over.keys()) if (!known.has(tenantId)) this.#over.delete(tenantId);
    for (const order of withdrawn) if (this.#isNew(order)) this.#neverBegun(order);
    for (const order of orders) if (this.#isNew(order)) this.#begin(order);
  }

  /** Neither over nor under way. */
  #isNew({ row, orderNo }: Order): boolean {
    return orderNo > (this.#over.get(row.id) ?? -1) && !this.#running.has(row.id);
  }

  #neverBegun({ row, orderNo, engine }: Order): void {
    this.#over.set(row.id, orderNo);
    this.#options.report({ tenantId: row.id, orderNo, id: newId(), engine, phase: 'ended', reason: reasons.withdrawn });
  }

  /** Returns when all schedulers have ended. */
  async stopAll(): Promise<void> {
    const all = [...this.#running.values()];
    for (const { abort } of all) abort.abort();
    await Promise.all(all.map(({ done }) => done));
  }

  /** Forgets which orders have ended. Called when the host registers under a new id. */
  forget(): void {
    this.#over.clear();
  }

  #begin(order: Order): void {
    const abort = new AbortController();
    const id = newId();
    this.#running.set(order.row.id, { id, order, abort, done: this.#carryOut(order, id, abort.signal) });
  }

  async #carryOut(order: Order, id: string, signal: AbortSignal): Promise<void> {
    const tenantId = order.row.id;
    const { orderNo, engine } = order;
    const report = (phase: HostReport['phase'], reason: Reason | null): void =>
      this.#options.report({ tenantId, orderNo, id, engine, phase, reason });
    report('starting', reasons.starting);
    const ending = await this.#attempt(order, report, signal);
    report('ended', ending.reason);
    this.#over.set(tenantId, order.orderNo);
    this.#running.delete(tenantId);
    this.#options.onEnd(order, ending);
  }

  async #attempt(
    order: Order,
    report: (phase: HostReport['phase'], reason: Reason | null) => void,
    signal: AbortSignal,
  ): Promise<Ending> {
    const permit = await this.#startPermits.take(signal);
    if (permit === undefined) return stopped();
    const hooks = {
      onWait: (reason: Reason) => report('starting', reason),
      onRunning: () => {
        permit.release();
        report('running', null);
      },
      onTrouble: (trouble: Reason | null) => report('running', trouble),
      onHang: (reason: Reason) => report('starting', reason),
    };
    const running = this.#run(order, hooks, signal);
    void within(maxStartMs, running).then(() => permit.release());
    const ending = await running;
    permit.release();
    return ending;
  }

  async #run(order: Order, hooks: PartHooks, signal: AbortSignal): Promise<Ending> {
    try {
      return await this.#options.run(order, hooks, signal);
    } catch (error) {
      return endingOf(error);
    }
  }
}
