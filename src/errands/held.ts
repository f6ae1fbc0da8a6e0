/**
 * The errands that this process holds, as one worker. Beats name them (`ErrandBeat`), runners and couriers work on them.
 *
 * A hold lives from `hold` to `release`:
 * - **waiting** while an older hold of the same errand has not been released. It happens when the worker lost the errand, won it
 *   back, and its old work still runs. The new work begins only when the old has ended (`whenFree`).
 * - **working** until its work has ended.
 * - **settling** while its ack or nack is under way (`settle`). A beat that finds it gone meanwhile is not told of a loss.
 * - **lost** once a beat says so, or the errand is held under a newer lease. Its signal aborts, and beats no longer name it. It
 *   must be released all the same, when its work has ended.
 */
import type { ErrandQueue, HeldErrand, NamedErrand } from './contract.ts';

export class HeldErrands {
  /** Not released, by queue and key; the oldest first. */
  readonly #holds = new Map<string, readonly ErrandHold[]>();
  readonly #listeners: HoldListeners = {
    onLost: () => void this.#named--,
    onReleased: (hold) => this.#remove(hold),
  };
  #named = 0;
  #onFirst: (() => void) | undefined;

  /** The number of errands that beats name. */
  get size(): number {
    return this.#named;
  }

  /** Registers an errand that was acquired. Call it at once, so that the next beat names it. */
  hold(queue: ErrandQueue, { key, lease }: HeldErrand): ErrandHold {
    const id = idOf(queue, key);
    const older = this.#holds.get(id) ?? none;
    for (const hold of older) hold.lose();
    const hold = new ErrandHold({ queue, key, lease }, older.at(-1), this.#listeners);
    this.#holds.set(id, [...older, hold]);
    this.#named++;
    if (this.#named === 1) this.#onFirst?.();
    return hold;
  }

  /** The errands that the next beat names. */
  list(): NamedErrand[] {
    const holds = [...this.#holds.values()].flat();
    return holds.flatMap(({ isLost, queue, key, lease }) => (isLost ? [] : { queue, key, lease }));
  }

  /** The hold of this errand under this lease, unless it is lost or released. */
  find({ queue, key, lease }: NamedErrand): ErrandHold | undefined {
    return this.#holds.get(idOf(queue, key))?.find((hold) => hold.lease === lease && !hold.isLost);
  }

  /** Calls the listener whenever something is held and nothing was before. */
  onFirst(listener: () => void): void {
    this.#onFirst = listener;
  }

  #remove(released: ErrandHold): void {
    if (!released.isLost) this.#named--;
    const id = idOf(released.queue, released.key);
    const left = (this.#holds.get(id) ?? none).filter((hold) => hold !== released);
    if (left.length > 0) this.#holds.set(id, left);
    else this.#holds.delete(id);
  }
}

const none: readonly ErrandHold[] = [];

function idOf(queue: ErrandQueue, key: string): string {
  return `${queue} ${key}`;
}

interface HoldListeners {
  readonly onLost: () => void;
  readonly onReleased: (hold: ErrandHold) => void;
}

export class ErrandHold implements NamedErrand {
  readonly queue: ErrandQueue;
  readonly key: string;
  readonly lease: number;
  readonly #older: ErrandHold | undefined;
  readonly #listeners: HoldListeners;
  /** Made when somebody asks for it: most errands end before that. */
  #abort: AbortController | undefined;
  #ended: PromiseWithResolvers | undefined;
  #isSettling = false;
  #isLost = false;
  #isReleased = false;

  constructor({ queue, key, lease }: NamedErrand, older: ErrandHold | undefined, listeners: HoldListeners) {
    this.queue = queue;
    this.key = key;
    this.lease = lease;
    this.#older = older;
    this.#listeners = listeners;
  }

  get isLost(): boolean {
    return this.#isLost;
  }

  /** Aborts once the errand is lost, or `abort` was called. */
  get signal(): AbortSignal {
    this.#abort ??= new AbortController();
    if (this.#isLost) this.#abort.abort();
    return this.#abort.signal;
  }

  /** Returns at once, or when older work on this errand has ended in this process. Undefined: there is none. */
  whenFree(): Promise<void> | undefined {
    return this.#older === undefined || this.#older.#isReleased ? undefined : this.#older.#whenReleased();
  }

  lose(): void {
    if (this.#isLost || this.#isSettling || this.#isReleased) return;
    this.#isLost = true;
    this.#listeners.onLost();
    this.#abort?.abort();
  }

  /** Asks the work to end; the errand is still held. */
  abort(): void {
    this.#abort ??= new AbortController();
    this.#abort.abort();
  }

  /** The work has ended, and its ack or nack is sent next. The errand is still named, in case that fails. */
  settle(): void {
    this.#isSettling = true;
  }

  /** The work has ended, and its ack or nack is answered. May be called twice. */
  release(): void {
    if (this.#isReleased) return;
    this.#isReleased = true;
    this.#listeners.onReleased(this);
    this.#ended?.resolve();
  }

  #whenReleased(): Promise<void> {
    this.#ended ??= withResolvers();
    return this.#ended.promise;
  }
}

interface PromiseWithResolvers {
  readonly promise: Promise<void>;
  readonly resolve: () => void;
}

/** Promise.withResolvers is not in Node 20. */
function withResolvers(): PromiseWithResolvers {
  let resolve = (): void => {};
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}
