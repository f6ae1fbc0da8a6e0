/**
 * How many connections a process may have to all its tenants together, so that a server's are never used up by tenants that
 * are many. Whoever finds none left waits a moment, the one that has fewest first; meanwhile idle connections of others
 * are closed. What comes of waiting in vain is an error like that of a server which refuses.
 *
 * Only a few are opened at a time: for the server each is a new process, and hundreds at once would leave it no time for
 * those that are there.
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
/** One that takes longer waits for something else than the processor, and others need not wait for it. */
const openingMs = 500;
/** What opening one takes, until it is learnt, and what is believed at most. */
const usualOpenMs = 15;
const longestOpenMs = 1_000;
/** So many times as long as opening one takes, no other is opened that can be done without. */
const restFactor = 4;

export class ConnectionBudget {
  readonly #most: number;
  readonly #held = new Map<string, number>();
  readonly #waiting = new Set<Waiter>();
  /** With the way to take a connection out, whoever stands before the pool by now. */
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

  /** Some wait only because others are being opened. */
  get isBusy(): boolean {
    return this.#waiting.size > 0 && this.#total < this.#most;
  }

  /** What one owner should have at most, so that a few that stand still leave some to the others. */
  get fairShare(): number {
    return Math.max(2, Math.floor(this.#most / 3));
  }

  /**
   * How long opening one has taken lately, and how long no more should be opened by whoever can do without: on a server
   * that is busy, say because hundreds of schedulers start, more connections would make it busier.
   */
  get openMs(): number {
    return this.#openMs;
  }
  get restMs(): number {
    return this.#restUntilMs - performance.now();
  }

  /**
   * One is opened that could be done without, until it can be used: what it waits for counts, because a busy process and a
   * busy server both make it wait. One that cannot be opened says nothing about that.
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
   * Resolves when the owner may open one more, with what is to be called when it is open or could not be. `leave` must be
   * called when it is closed.
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

  /** Its idle connections may be closed when others wait. */
  join(pool: Pool): void {
    for (const other of this.#pools.keys()) if (other.ending) this.#pools.delete(other);
    this.#pools.set(pool, pool.connect.bind(pool));
    // a connection that is given back is idle only now
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
   * One for each that waits, of the pools that have most of them. Only a connection that is taken out can be closed from
   * outside, and it counts until it has ended.
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

/** What is to be called when a client can be used: making it so is most of what opening one costs the server. */
const openings = new WeakMap<ClientBase, () => void>();

/** It has been set up, or could not be. */
export function noteOpened(client: ClientBase): void {
  openings.get(client)?.();
}

/** A client for pools: it enters the budget before it connects, and leaves when its connection has ended, however. */
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
      // the pool begins to listen a moment after the connection is there: a server's last word may come in that very packet
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
