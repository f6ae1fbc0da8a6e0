/**
 * A pool around the connection that holds a scheduler's lock. That connection serves first. Further ones are opened after the
 * wait of `patience.ts`, and close 2 s after their last use. So an idle tenant costs one connection. If the kept connection is
 * lost, the others are closed too, because another scheduler may hold the lock by now.
 *
 * Promise: after `destroy` nothing passes over any of its connections, whatever code still holds them (I6).
 */
import type { Client, ClientBase, Pool, PoolClient } from 'pg';
import { isConnectionLoss, knownError, sqlStateOf } from '../../errors.ts';
import { within } from '../../kernel/service.ts';
import { sever } from './client.ts';
import type { ConnectionBudget } from './connection-budget.ts';
import { usualMomentMs, waitPatiently } from './patience.ts';
import { openPool, type PoolOptions } from './pool.ts';

export interface KeptPool {
  readonly pool: Pool;
  /** Closes the connections in order, and cuts those that remain after `limitMs`. */
  close(limitMs: number): Promise<void>;
  destroy(): void;
}

/** How long a further connection stays open without use. */
const idleMs = 2_000;
const closed = 'the pool is closed';

/** The arguments of `query` of pg, in any of its forms. */
type Query = readonly unknown[];

interface Asked {
  query(...query: Query): Promise<unknown>;
}

interface KeptPoolOptions extends Omit<PoolOptions, 'idleMs'> {
  /** How long a caller waits for the kept connection if it is busy. */
  readonly momentMs?: number;
}

/** `max` is the number of further connections. */
export function keptPool(kept: Client, options: KeptPoolOptions): KeptPool {
  const open = new Set<ClientBase>([kept]);
  let destroyed = false;
  let closing = false;
  const others = openPool({
    ...options,
    idleMs,
    onOpen: async (client) => {
      open.add(client);
      client.once('end', () => open.delete(client));
      if (destroyed) throw new Error(closed);
      await options.onOpen?.(client);
    },
  });
  const { momentMs = usualMomentMs, budget } = options;
  const lending = new Lending({ kept, others, connectOther: others.connect.bind(others), momentMs, budget });
  const destroy = (): void => {
    destroyed = true;
    lending.close();
    if (!others.ending) void others.end().catch(() => {});
    for (const client of open) sever(client);
  };
  kept.once('end', () => {
    if (!closing) destroy();
  });
  const close = async (limitMs: number): Promise<void> => {
    closing = true;
    lending.close();
    const ended = Promise.all([kept.end(), others.ending ? undefined : others.end()]).catch(() => {});
    await within(limitMs, ended);
    destroy();
  };
  const served = { connect: () => lending.take(), query: (...query: Query) => lending.query(query) };
  return { pool: Object.assign(others, served as object), close, destroy };
}

interface LendingOptions {
  readonly kept: Client;
  readonly others: Pool;
  readonly connectOther: () => Promise<PoolClient>;
  readonly momentMs: number;
  readonly budget: ConnectionBudget | undefined;
}

class Lending {
  readonly #options: LendingOptions;
  readonly #line: Waiting[] = [];
  #lent = false;
  #closed = false;

  constructor(options: LendingOptions) {
    this.#options = options;
  }

  close(): void {
    this.#closed = true;
    for (const { refuse } of this.#line.splice(0)) refuse(new Error(closed));
  }

  async take(): Promise<PoolClient> {
    if (this.#closed) throw new Error(closed);
    if (!this.#lent) return this.#lend();
    const place = this.#stand();
    const { others, connectOther, momentMs, budget } = this.#options;
    // some idle connections may already belong to waiting callers
    if (others.idleCount > others.waitingCount) return eitherOf(place, connectOther());
    // usually two sweeps coincide, and the first ends soon
    await waitPatiently({ budget, momentMs, isWaiting: () => !place.isServed(), freed: () => place.freed });
    if (place.isServed()) return place.freed;
    return eitherOf(place, budget?.opening(connectOther) ?? connectOther());
  }

  /** Like `query` of a pool, but a failed statement does not close the connection. */
  async query(query: Query): Promise<unknown> {
    const client = await this.take();
    const onLost = (): void => {};
    client.on('error', onLost);
    let lost: Error | undefined;
    try {
      return await (client as Asked).query(...query);
    } catch (error) {
      lost = error instanceof Error && isConnectionLoss(error) ? error : undefined;
      throw error;
    } finally {
      client.off('error', onLost);
      client.release(lost);
    }
  }

  #lend(): PoolClient {
    this.#lent = true;
    let back = false;
    const release = (broken?: Error | boolean): void => {
      if (back) throw new Error('a connection was given back twice');
      back = true;
      if (broken !== undefined && broken !== false) sever(this.#options.kept);
      this.#passOn();
    };
    return Object.assign(this.#options.kept, { release });
  }

  #passOn(): void {
    this.#lent = false;
    this.#line.shift()?.admit(this.#lend());
  }

  /** Waits in line for the kept connection. */
  #stand(): Place {
    let waiting: Waiting | undefined;
    const freed = new Promise<PoolClient>((admit, refuse) => (waiting = { admit, refuse }));
    // a caller that has left the line does not handle the rejection
    freed.catch(() => {});
    const mine = waiting as unknown as Waiting;
    this.#line.push(mine);
    const isServed = (): boolean => !this.#line.includes(mine);
    const leave = (): boolean => !isServed() && this.#line.splice(this.#line.indexOf(mine), 1).length > 0;
    return { freed, isServed, leave };
  }
}

interface Waiting {
  readonly admit: (client: PoolClient) => void;
  readonly refuse: (error: Error) => void;
}

interface Place {
  readonly freed: Promise<PoolClient>;
  readonly isServed: () => boolean;
  /** Returns false if it was served already. */
  readonly leave: () => boolean;
}

/** The first of the two that becomes free: another connection, or the kept one. */
async function eitherOf(place: Place, other: Promise<PoolClient>): Promise<PoolClient> {
  const come = other.catch((error: unknown) => {
    if (!isFull(error)) throw error;
    return place.freed;
  });
  await Promise.race([place.freed, come]).catch(() => {});
  if (place.leave()) return other;
  other.then(
    (client) => client.release(),
    () => {},
  );
  return place.freed;
}

/** The budget of this process is used up, or the server has no connection left. */
function isFull(error: unknown): boolean {
  return knownError(error)?.code === 'database_unavailable' || sqlStateOf(error) === '53300';
}
