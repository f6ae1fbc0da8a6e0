/**
 * Keeps a worker's places filled: one poll at a time, for all places that are free, and the next as soon as it is
 * answered.
 *
 * A tenant that has too much unreported is left out, so that the others are served meanwhile. When there is room for it
 * again, the next poll takes the place of the one that waits: the API ends the older of two.
 *
 * A poll that asks for runs is not aborted, because an answer already made would be lost with them until the lease ends.
 * When all places are taken a poll for nothing waits for signals; that one is aborted as soon as a place is free.
 */
import type { ClaimAnswer, ClaimRequest } from '../contract/wire.ts';
import { delayMs, reconnect } from '../kernel/backoff.ts';
import { loop, pause, type Service } from '../kernel/service.ts';

/** What a poll asks for. */
type Wish = Pick<ClaimRequest, 'free' | 'without' | 'wait_ms'>;

export interface ClaimerOptions {
  poll(wish: Wish, signal: AbortSignal): Promise<ClaimAnswer>;
  /** How many more runs fit now. */
  free(): number;
  /** Tenants of which no more fit now. */
  without(): string[];
  take(answer: ClaimAnswer): void;
  readonly waitMs: ClaimRequest['wait_ms'];
  readonly onError: (error: unknown) => void;
}

/** How long a full worker waits for a place before it opens a poll for signals: a busy one never does. */
const fullMs = 50;
/** How long a poll waits while an older one does that nobody has ended: the one has no room for some, so must be short. */
const besideMs = 20;

export class Claimer implements Service {
  readonly name = 'claimer';
  readonly #options: ClaimerOptions;
  readonly #service: Service;
  #onRoom: (() => void) | undefined;
  #fruitless = 0;
  #quiet = false;
  /** A poll that waits still, though another has taken its place. */
  #older: Promise<void> | undefined;

  constructor(options: ClaimerOptions) {
    this.#options = options;
    this.#service = loop(
      'claims',
      (signal) => this.#pass(signal),
      options.onError,
      (failures) => delayMs(reconnect, failures),
    );
  }

  async start(): Promise<void> {
    this.#quiet = false;
    await this.#service.start();
  }

  /** No further poll; the one under way may still bring runs. */
  quiet(): void {
    this.#quiet = true;
    this.#onRoom?.();
  }

  /** Aborts the poll under way. */
  async stop(): Promise<void> {
    await this.#service.stop();
    await this.#older;
  }

  /** There may be more room than before. */
  roomChanged(): void {
    this.#onRoom?.();
  }

  /** One poll; once quiet, none. */
  async #pass(signal: AbortSignal): Promise<void> {
    if (this.#quiet) return untilAborted(signal);
    const free = this.#options.free();
    await (free > 0 ? this.#poll(free, signal) : this.#full(signal));
  }

  async #poll(free: number, signal: AbortSignal): Promise<void> {
    const without = this.#options.without();
    const asking = this.#ask({ free, without, wait_ms: this.#older ? besideMs : this.#options.waitMs }, signal);
    if (without.length === 0 || this.#older) return asking;
    if (!(await this.#roomFor(without, asking))) return;
    this.#older = asking.catch(() => {}).finally(() => (this.#older = undefined));
  }

  async #ask(wish: Wish, signal: AbortSignal): Promise<void> {
    const sentAt = performance.now();
    const answer = await this.#options.poll(wish, signal);
    this.#options.take(answer);
    const fruitless = answer.runs.length === 0 && performance.now() - sentAt < 10;
    this.#fruitless = fruitless ? this.#fruitless + 1 : 0;
    // an API that answers "nothing" at once, again and again, is not asked in a tight loop
    if (this.#fruitless > 3) await pause(50, signal);
  }

  /** Whether one of these tenants has room again before the poll without them has come to its end. */
  async #roomFor(without: readonly string[], asking: Promise<void>): Promise<boolean> {
    const room = new Promise<boolean>((resolve) => {
      this.#onRoom = () => {
        const still = new Set(this.#options.without());
        if (without.some((tenant) => !still.has(tenant))) resolve(true);
      };
    });
    try {
      return await Promise.race([asking.then(() => false), room]);
    } finally {
      this.#onRoom = undefined;
    }
  }

  async #full(signal: AbortSignal): Promise<void> {
    if (await this.#roomWithin(fullMs, signal)) return;
    const room = new AbortController();
    const abort = (): void => room.abort('room');
    signal.addEventListener('abort', abort, { once: true });
    this.#onRoom = abort;
    try {
      this.#options.take(await this.#options.poll({ free: 0, wait_ms: this.#options.waitMs }, room.signal));
    } catch (error) {
      if (!room.signal.aborted) throw error;
    } finally {
      this.#onRoom = undefined;
      signal.removeEventListener('abort', abort);
    }
  }

  /** Whether there is reason to look again before the time is over. A busy worker comes here often: no errors are made. */
  async #roomWithin(ms: number, signal: AbortSignal): Promise<boolean> {
    return await new Promise<boolean>((resolve) => {
      const settle = (room: boolean): void => {
        clearTimeout(timer);
        signal.removeEventListener('abort', early);
        this.#onRoom = undefined;
        resolve(room);
      };
      const early = (): void => settle(true);
      const timer = setTimeout(() => settle(false), ms);
      signal.addEventListener('abort', early, { once: true });
      this.#onRoom = early;
    });
  }
}

async function untilAborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
}
