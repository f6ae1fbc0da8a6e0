/**
 * One watch over a tenant for all the browsers that look at it. Whoever follows gets digests, merged while it is slow, so
 * neither a busy tenant nor a sleepy browser costs memory. The watch runs while somebody follows.
 */
import { setTimeout as pause } from 'node:timers/promises';
import type { Pool } from 'pg';
import { hangBell } from '../../events/bell.ts';
import { newestPosition } from '../../events/queries.ts';
import { Bell } from '../../kernel/bell.ts';
import { systemTime } from '../../kernel/time.ts';
import type { ApiContext } from '../context.ts';
import { Digest } from './digest.ts';
import { digestSince, ChangePoller, recentDigest } from './change-poller.ts';

/** Between two looks, however often it rings; and at the latest. */
const paceMs = 100;
const sweepMs = 1_000;

/** One browser's place: what it has not been told yet, and how far it knows the log. */
export class Follower {
  readonly bell = new Bell(systemTime);
  #pending = new Digest();
  #position = 0;
  #failure: Error | undefined;

  get position(): number {
    return this.#position;
  }

  tell(digest: Digest, position: number): void {
    this.#pending.addAll(digest);
    this.#position = Math.max(this.#position, position);
    if (!this.#pending.isEmpty) this.bell.ring();
  }

  fail(error: unknown): void {
    this.#failure = error instanceof Error ? error : new Error(String(error));
    this.bell.ring();
  }

  /** What there is to tell; throws when the watch has failed. */
  take(): Digest {
    if (this.#failure !== undefined) throw this.#failure;
    const digest = this.#pending;
    this.#pending = new Digest();
    return digest;
  }
}

interface Watching {
  readonly lookout: ChangePoller;
  readonly stop: AbortController;
}

export class ChangeWatch {
  readonly #ctx: ApiContext;
  readonly #followers = new Set<Follower>();
  #watching: Watching | undefined;

  constructor(ctx: ApiContext) {
    this.#ctx = ctx;
  }

  /** From the newest event on, or from the position named. */
  async follow(after: number | undefined): Promise<Follower> {
    const follower = new Follower();
    // before the position is asked for: what the others are told from now on this one hears, too
    this.#followers.add(follower);
    try {
      const newest = await newestPosition(this.#ctx.db);
      const missed =
        after === undefined ? await recentDigest(this.#ctx, newest) : await digestSince(this.#ctx.db, after, newest);
      this.#watching?.lookout.tellHeld(missed);
      follower.tell(missed, newest);
      this.#begin(newest);
      return follower;
    } catch (error) {
      this.leave(follower);
      throw error;
    }
  }

  leave(follower: Follower): void {
    this.#followers.delete(follower);
    if (this.#followers.size === 0) this.#end();
  }

  #begin(position: number): void {
    if (this.#watching !== undefined || this.#followers.size === 0) return;
    // a lookout of its own for each: one that was ended may still be at its last look
    const watching = { lookout: new ChangePoller(this.#ctx, position), stop: new AbortController() };
    this.#watching = watching;
    void this.#run(watching).catch((error: unknown) => {
      if (this.#watching !== watching) return;
      this.#end();
      for (const follower of this.#followers) follower.fail(error);
      this.#followers.clear();
    });
  }

  #end(): void {
    this.#watching?.stop.abort();
    this.#watching = undefined;
  }

  async #run({ lookout, stop: { signal } }: Watching): Promise<void> {
    const bell = hangBell(this.#ctx.hints, ['events']);
    try {
      while (!signal.aborted) {
        const digest = await lookout.look();
        if (signal.aborted) return;
        for (const follower of this.#followers) follower.tell(digest, lookout.position);
        await pause(paceMs, undefined, { signal }).catch(() => {});
        await bell.wait(sweepMs - paceMs, signal);
      }
    } finally {
      bell.close();
    }
  }
}

const watches = new WeakMap<Pool, ChangeWatch>();

/** The watch of a tenant, which lives and dies with its pool. */
export function watchOf(ctx: ApiContext): ChangeWatch {
  const known = watches.get(ctx.pool) ?? new ChangeWatch(ctx);
  watches.set(ctx.pool, known);
  return known;
}
