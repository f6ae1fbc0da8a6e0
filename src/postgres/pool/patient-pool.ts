/**
 * A pool that opens another connection only when those it has are busy for longer than a moment. Most of what a tenant is
 * asked for is over sooner than a connection is made, and of hundreds of tenants each connection that is not made counts:
 * a new one plans anew whatever is asked of it.
 *
 * Promise: whoever came first is served first, and nobody waits for longer than two seconds where another may be opened.
 */
import type { Pool, PoolClient } from 'pg';
import { within } from '../../kernel/service.ts';
import type { ConnectionBudget } from './connection-budget.ts';

type Callback = (error: Error | undefined, client: PoolClient | undefined, release: () => void) => void;

const usualMomentMs = 15;
const longestMs = 2_000;

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

/** Those who wait for a connection that is given back, first come, first served. */
class Line {
  readonly #pool: Pool;
  readonly #budget: ConnectionBudget;
  readonly #momentMs: number;
  readonly #places: Place[] = [];

  constructor(pool: Pool, budget: ConnectionBudget, momentMs: number) {
    this.#pool = pool;
    this.#budget = budget;
    this.#momentMs = momentMs;
    // a connection that is given back is idle right after this
    pool.on('release', () => queueMicrotask(() => this.#callFirst()));
  }

  /** Whether all that the pool has are busy, or promised to others, and there might be another. */
  isNeeded(ahead = this.#places.length): boolean {
    const { totalCount, idleCount, waitingCount, options, ending } = this.#pool;
    return totalCount > 0 && idleCount <= waitingCount + ahead && totalCount < options.max && !ending;
  }

  /** A moment is as long as opening one lately took; after one was opened anywhere, there is a rest. False: none came free. */
  async stand(): Promise<boolean> {
    const nowMs = performance.now();
    const momentEndMs = nowMs + Math.max(this.#momentMs, this.#budget.openMs);
    const lastMs = Math.max(momentEndMs, nowMs + longestMs);
    const leftMs = (): number =>
      Math.min(Math.max(momentEndMs - performance.now(), this.#budget.restMs), lastMs - performance.now());
    const place: Place = { call: () => {} };
    const isWaiting = (): boolean => this.isNeeded(this.#places.indexOf(place));
    this.#places.push(place);
    for (let ms = leftMs(); isWaiting() && ms > 0; ms = leftMs()) {
      await within(ms, new Promise<void>((resolve) => (place.call = resolve)));
    }
    const isFree = !isWaiting();
    this.#places.splice(this.#places.indexOf(place), 1);
    // there may be more than one
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
