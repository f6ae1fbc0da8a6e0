/**
 * The orders that a host is carrying out: exactly those that name it. An order that is gone or has a newer one in its place
 * is stopped, and only when it has ended does the newer one begin. One that has ended by itself is not begun again; one that
 * was withdrawn before it was begun has ended.
 */
import { newId } from '../kernel/id.ts';
import { within } from '../kernel/service.ts';
import type { PartHooks } from './failing-parts.ts';
import type { Order, Orders, Word } from './host-queries.ts';
import { type Ending, endingOf, stopped } from './singleton.ts';
import { Semaphore } from '../kernel/semaphore.ts';

export interface AttemptOptions {
  /** Carries out the order. */
  readonly run: (order: Order, hooks: PartHooks, signal: AbortSignal) => Promise<Ending>;
  readonly say: (word: Word) => void;
  /** An attempt has ended: there may be a newer order to begin. */
  readonly onEnd: (order: Order, ending: Ending) => void;
}

interface Attempt {
  readonly id: string;
  readonly order: Order;
  readonly abort: AbortController;
  readonly done: Promise<void>;
}

/** So many start at once; one that takes long does not keep the others waiting for longer than this. */
const starting = 16;
const longestTurnMs = 5_000;

export class Attempts {
  readonly #options: AttemptOptions;
  readonly #running = new Map<string, Attempt>();
  /** By tenant, the newest order that was carried out to its end. */
  readonly #over = new Map<string, number>();
  readonly #startPermits = new Semaphore(starting);

  constructor(options: AttemptOptions) {
    this.#options = options;
  }

  /** Those that are under way, by tenant. */
  get running(): readonly { readonly tenantId: string; readonly id: string; readonly orderNo: number }[] {
    return [...this.#running].map(([tenantId, { id, order }]) => ({ tenantId, id, orderNo: order.orderNo }));
  }

  /** Makes it so that these are carried out, and no others. Returns at once. */
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
    const ended = { phase: 'ended', code: 'stopping', reason: 'it was withdrawn before it was begun' } as const;
    this.#options.say({ tenantId: row.id, orderNo, id: newId(), engine, ...ended });
  }

  /** Returns when nothing is left of any. */
  async stopAll(): Promise<void> {
    const all = [...this.#running.values()];
    for (const { abort } of all) abort.abort();
    await Promise.all(all.map(({ done }) => done));
  }

  /** A host that was written off begins anew. */
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
    const say = (phase: Word['phase'], code: Word['code'], reason: string | null): void =>
      this.#options.say({
        tenantId,
        orderNo: order.orderNo,
        id,
        engine: order.engine,
        phase,
        code,
        reason,
      });
    say('starting', 'starting', 'starting');
    const ending = await this.#attempt(order, say, signal);
    say('ended', ending.code, ending.message);
    this.#over.set(tenantId, order.orderNo);
    this.#running.delete(tenantId);
    this.#options.onEnd(order, ending);
  }

  async #attempt(
    order: Order,
    say: (phase: Word['phase'], code: Word['code'], reason: string | null) => void,
    signal: AbortSignal,
  ): Promise<Ending> {
    const permit = await this.#startPermits.take(signal);
    if (permit === undefined) return stopped();
    const hooks = {
      onWait: (reason: string) => say('starting', 'starting', reason),
      onRunning: () => {
        permit.release();
        say('running', null, null);
      },
      onTrouble: (trouble: string | null) => say('running', null, trouble),
      onHang: (reason: string) => say('starting', 'failing', reason),
    };
    const running = this.#run(order, hooks, signal);
    void within(longestTurnMs, running).then(() => permit.release());
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
