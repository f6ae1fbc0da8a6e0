/**
 * Limits the connections of a process to all its tenants together, so that many tenants do not use up the server's connections.
 * An owner that finds none left waits; the owner with the fewest connections is served first. Meanwhile idle connections of
 * other owners are closed. An owner that has waited too long gets the same error as from a server that is full.
 *
 * Only a few connections are opened at a time. Each is a new process of the server, and hundreds at once would slow down all
 * the others.
 */
import { availableParallelism } from 'node:os';
import { Client, type ClientBase, type ClientConfig, type Pool, type PoolClient } from 'pg';
import { MillraceError } from '../../errors.ts';

interface Waiter {
  readonly owner: string;
  readonly admit: () => void;
}

const waitMs = 5_000;
const mostAtOnce = Math.max(4, 2 * availableParallelism());
/** An opening that takes longer does not wait for the processor, so it no longer counts as one of the few. */
const openingMs = 500;
/** The estimated time of an opening before the first measurement, and its upper limit. */
const usualOpenMs = 15;
const longestOpenMs = 1_000;
/** After an opening, optional connections are not opened for this multiple of its duration. */
const restFactor = 4;

export class ConnectionBudget {
  readonly #most: number;
  readonly #held = new Map<string, number>();
  readonly #waiting = new Set<Waiter>();
  /** A pool, and its original function for taking a connection, without any wrapper. */
  readonly #pools = new Map<Pool, () => Promise<PoolClient>>();
  #total = 0;
  #opening = 0;
  #closing = 0;
  #openMs = usualOpenMs;
  #restUntilMs = Number.NEGATIVE_INFINITY;

  constructor(most: number) {
    this.#most = most;
  }

  get total(): number {
    return this.#total;
  }

  /** Some owners wait only because other connections are being opened. */
  get isBusy(): boolean {
    return this.#waiting.size > 0 && this.#total < this.#most;
  }

  /** The fair maximum for one owner, so that a few slow tenants leave connections to the others. */
  get fairShare(): number {
    return Math.max(2, Math.floor(this.#most / 3));
  }

  /**
   * How long openings have taken lately, and for how long no optional connection should be opened. More connections would
   * slow down a server that is busy, for example because hundreds of schedulers start.
   */
  get openMs(): number {
    return this.#openMs;
  }
  get restMs(): number {
    return this.#restUntilMs - performance.now();
  }

  /**
   * Opens an optional connection and measures the time until it can be used. All waiting counts, because a busy process and
   * a busy server both cause it. A failed opening is not measured.
   */
  async opening<T>(open: () => Promise<T>): Promise<T> {
    const startedMs = performance.now();
    this.#rest();
    const connection = await open();
    this.#openMs = Math.min(performance.now() - startedMs, longestOpenMs);
    this.#rest();
    return connection;
  }

  #rest(): void {
    this.#restUntilMs = performance.now() + restFactor * this.#openMs;
  }

  /**
   * Resolves when the owner may open one more connection. Call the returned function when it is open or has failed, and
   * `leave` when it is closed.
   */
  async enter(owner: string, withinMs = waitMs): Promise<() => void> {
    if (this.#mayOpen) return this.#admit(owner);
    return new Promise<() => void>((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#waiting.delete(waiter);
        reject(this.#exhausted());
      }, withinMs);
      const waiter: Waiter = {
        owner,
        admit: () => {
          clearTimeout(timer);
          resolve(this.#admit(owner));
        },
      };
      this.#waiting.add(waiter);
      this.#closeIdle();
    });
  }

  get #mayOpen(): boolean {
    return this.#total < this.#most && this.#opening < mostAtOnce;
  }

  leave(owner: string): void {
    this.#total--;
    const held = (this.#held.get(owner) ?? 1) - 1;
    if (held > 0) this.#held.set(owner, held);
    else this.#held.delete(owner);
    this.#admitNext();
  }

  /** Allows the budget to close idle connections of this pool while other owners wait. */
  join(pool: Pool): void {
    for (const other of this.#pools.keys()) if (other.ending) this.#pools.delete(other);
    this.#pools.set(pool, pool.connect.bind(pool));
    // a released connection counts as idle only after this event
    pool.on('release', () => {
      if (this.#waiting.size > 0) setImmediate(() => this.#closeIdle());
    });
  }

  #admit(owner: string): () => void {
    this.#total++;
    this.#opening++;
    this.#held.set(owner, (this.#held.get(owner) ?? 0) + 1);
    let isOver = false;
    const opened = (): void => {
      if (isOver) return;
      isOver = true;
      clearTimeout(timer);
      this.#opening--;
      this.#admitNext();
    };
    const timer = setTimeout(opened, openingMs);
    return opened;
  }

  #admitNext(): void {
    if (!this.#mayOpen) return;
    let next: Waiter | undefined;
    for (const waiter of this.#waiting) {
      if (next === undefined || this.#heldBy(waiter) < this.#heldBy(next)) next = waiter;
    }
    if (next === undefined) return;
    this.#waiting.delete(next);
    next.admit();
  }

  #heldBy({ owner }: Waiter): number {
    return this.#held.get(owner) ?? 0;
  }

  /**
   * Closes one idle connection for each waiting owner, in the pools that have most. A pool's connection can only be closed by
   * taking it out first. It counts until it has ended.
   */
  #closeIdle(): void {
    while (this.#total >= this.#most && this.#closing < this.#waiting.size) {
      const takeOut = this.#idlest();
      if (takeOut === undefined) return;
      this.#closing++;
      void takeOut().then(
        (client) => {
          client.once('end', () => this.#closing--);
          client.release(true);
        },
        () => this.#closing--,
      );
    }
  }

  #idlest(): (() => Promise<PoolClient>) | undefined {
    let idlest: Pool | undefined;
    for (const pool of this.#pools.keys()) {
      if (!pool.ending && pool.waitingCount === 0 && pool.idleCount > (idlest?.idleCount ?? 0)) idlest = pool;
    }
    return idlest && this.#pools.get(idlest);
  }

  #exhausted(): MillraceError {
    return new MillraceError(
      'database_unavailable',
      this.#total < this.#most
        ? 'the server takes too long to open connections; try again'
        : `this process has ${this.#most} connections to its tenants, and all are in use; try again`,
    );
  }
}

type Connected = ((error: Error) => void) | ((error: null, client: Client) => void);

/** Called when a client is set up, which is most of the cost of opening it. */
const openings = new WeakMap<ClientBase, () => void>();

/** Call it when the client is set up, or when that has failed. */
export function noteOpened(client: ClientBase): void {
  openings.get(client)?.();
}

/** A client for pools. It enters the budget before it connects, and leaves it when its connection has ended for any reason. */
export function budgetedClient(budget: ConnectionBudget, owner: string): new (config?: ClientConfig) => ClientBase {
  return class extends Client {
    override connect(): Promise<this>;
    override connect(callback: Connected): void;
    override connect(callback?: Connected): Promise<this> | void {
      const connecting = this.#enterAndConnect();
      if (callback === undefined) return connecting;
      const tell = callback as (error: unknown, client?: Client) => void;
      void connecting.then((client) => tell(null, client), tell);
    }

    async #enterAndConnect(): Promise<this> {
      const opened = await budget.enter(owner);
      let isIn = true;
      const leave = (): void => {
        if (isIn) budget.leave(owner);
        isIn = false;
      };
      this.once('end', leave);
      // the pool adds its listener shortly after the connection is open; an error of the server may arrive before that
      this.on('error', () => {});
      openings.set(this, opened);
      try {
        await super.connect();
        return this;
      } catch (error) {
        leave();
        opened();
        throw error;
      }
    }
  };
}
