/**
 * Keeps a worker's places filled: one poll at a time, for all free places, and the next as soon as it is answered.
 *
 * A tenant with too many unacknowledged reports is left out, so that the others are served meanwhile. When there is room for it
 * again, the next poll replaces the waiting one: the API ends the older of two.
 *
 * A poll that asks for runs is not aborted, because the runs of an answer under way would be lost until their lease expires.
 * When all places are taken, a poll without places waits for signals; it is aborted as soon as a place is free.
 */
import type { ClaimAnswer, ClaimRequest } from '../contract/wire.ts';
import { delayMs, reconnect } from '../kernel/backoff.ts';
import { loop, pause, type Service } from '../kernel/service.ts';

/** The request of a poll. */
type Wish = Pick<ClaimRequest, 'free' | 'without' | 'wait_ms'>;

export interface ClaimerOptions {
  poll(wish: Wish, signal: AbortSignal): Promise<ClaimAnswer>;
  /** The number of runs that fit now. */
  free(): number;
  /** Tenants without room for more runs now. */
  without(): string[];
  take(answer: ClaimAnswer): void;
  readonly waitMs: ClaimRequest['wait_ms'];
  readonly onError: (error: unknown) => void;
}

/** How long a full worker waits for a place before it opens a poll for signals. A busy worker never gets there. */
const fullMs = 50;
/** How long a poll waits beside an older one that has not ended. It is short, because that one leaves out some tenants. */
const besideMs = 20;

export class Claimer implements Service {
  readonly name = 'claimer';
  readonly #options: ClaimerOptions;
  readonly #service: Service;
  #onRoom: (() => void) | undefined;
  #fruitless = 0;
  #quiet = false;
  /** A replaced poll that still waits. */
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

  /** Begins no further poll; the one under way may still return runs. */
  quiet(): void {
    this.#quiet = true;
    this.#onRoom?.();
  }

  /** Aborts the poll under way. */
  async stop(): Promise<void> {
    await this.#service.stop();
    await this.#older;
  }

  /** Call it when there may be more room than before. */
  roomChanged(): void {
    this.#onRoom?.();
  }

  /** One poll; none while quiet. */
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
    // pauses if the API returns no runs at once, several times in a row
    if (this.#fruitless > 3) await pause(50, signal);
  }

  /** Whether one of these tenants has room again before the poll without them has ended. */
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

  /** Whether there may be room before the time is over. A busy worker calls this often, so it creates no errors. */
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
