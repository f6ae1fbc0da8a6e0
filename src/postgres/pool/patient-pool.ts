/**
 * A pool of pg that opens another connection only after the wait of `patience.ts`. A new connection also plans every statement
 * anew.
 *
 * Promise: callers are served in the order in which they came, and no caller waits for longer than 2 s if another connection may
 * be opened.
 */
import type { Pool, PoolClient } from 'pg';
import type { ConnectionBudget } from './connection-budget.ts';
import { usualMomentMs, waitPatiently } from './patience.ts';

type Callback = (error: Error | undefined, client: PoolClient | undefined, release: () => void) => void;

export function makePatient(pool: Pool, budget: ConnectionBudget, momentMs = usualMomentMs): Pool {
  const connectNow = pool.connect.bind(pool);
  const endNow = pool.end.bind(pool);
  const line = new Line(pool, budget, momentMs);
  const connect = async (): Promise<PoolClient> => {
    if (!line.isNeeded()) return connectNow();
    const isFree = await line.stand();
    return isFree ? connectNow() : budget.opening(connectNow);
  };
  const served = (callback?: Callback): Promise<PoolClient> | void => {
    const connecting = connect();
    if (callback === undefined) return connecting;
    const tell = callback;
    connecting.then(
      (client) => tell(undefined, client, () => client.release()),
      (error: Error) => tell(error, undefined, () => {}),
    );
  };
  const end = async (): Promise<void> => {
    const ended = endNow();
    line.callAll();
    await ended;
  };
  return Object.assign(pool, { connect: served as Pool['connect'], end });
}

interface Place {
  call: () => void;
}

/** Callers that wait for a connection to be given back, in the order in which they came. */
class Line {
  readonly #pool: Pool;
  readonly #budget: ConnectionBudget;
  readonly #momentMs: number;
  readonly #places: Place[] = [];

  constructor(pool: Pool, budget: ConnectionBudget, momentMs: number) {
    this.#pool = pool;
    this.#budget = budget;
    this.#momentMs = momentMs;
    // a released connection becomes idle right after this event
    pool.on('release', () => queueMicrotask(() => this.#callFirst()));
  }

  /** Whether all connections are busy or belong to earlier callers, and the pool may open another. */
  isNeeded(ahead = this.#places.length): boolean {
    const { totalCount, idleCount, waitingCount, options, ending } = this.#pool;
    return totalCount > 0 && idleCount <= waitingCount + ahead && totalCount < options.max && !ending;
  }

  /** Waits in line. Returns whether a connection is free. */
  async stand(): Promise<boolean> {
    const place: Place = { call: () => {} };
    const isWaiting = (): boolean => this.isNeeded(this.#places.indexOf(place));
    const freed = (): Promise<void> => new Promise((resolve) => (place.call = resolve));
    this.#places.push(place);
    await waitPatiently({ budget: this.#budget, momentMs: this.#momentMs, isWaiting, freed });
    const isFree = !isWaiting();
    this.#places.splice(this.#places.indexOf(place), 1);
    // another one may be free, too
    this.#callFirst();
    return isFree;
  }

  callAll(): void {
    for (const { call } of this.#places) call();
  }

  #callFirst(): void {
    this.#places[0]?.call();
  }
}
