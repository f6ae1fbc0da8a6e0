/**
 * One watch per tenant for all browsers. Each follower gets digests, which are merged while it is slow, so neither a busy
 * tenant nor a slow browser costs memory. The watch runs while it has followers.
 */
import { setTimeout as pause } from 'node:timers/promises';
import type { Pool } from 'pg';
import { makeHintBell } from '../../events/bell.ts';
import { newestPosition } from '../../events/queries.ts';
import { Bell } from '../../kernel/bell.ts';
import { systemTime } from '../../kernel/time.ts';
import type { ApiContext } from '../context.ts';
import { Digest } from './digest.ts';
import { digestSince, ChangePoller, recentDigest } from './change-poller.ts';

/** Minimum and maximum time between two polls. */
const paceMs = 100;
const sweepMs = 1_000;

/** The state of one browser: changes not sent yet, and its position in the log. */
export class Follower {
  readonly bell = new Bell(systemTime);
  #pending = new Digest();
  #position = 0;
  #failure: Error | undefined;

  get position(): number {
    return this.#position;
  }

  add(digest: Digest, position: number): void {
    this.#pending.addAll(digest);
    this.#position = Math.max(this.#position, position);
    if (!this.#pending.isEmpty) this.bell.ring();
  }

  fail(error: unknown): void {
    this.#failure = error instanceof Error ? error : new Error(String(error));
    this.bell.ring();
  }

  /** Returns the changes to send. Throws if the watch has failed. */
  take(): Digest {
    if (this.#failure !== undefined) throw this.#failure;
    const digest = this.#pending;
    this.#pending = new Digest();
    return digest;
  }
}

interface Watching {
  readonly poller: ChangePoller;
  readonly stop: AbortController;
}

export class ChangeWatch {
  readonly #ctx: ApiContext;
  readonly #followers = new Set<Follower>();
  #watching: Watching | undefined;

  constructor(ctx: ApiContext) {
    this.#ctx = ctx;
  }

  /** Follows from the newest event, or from the given position. */
  async follow(after: number | undefined): Promise<Follower> {
    const follower = new Follower();
    // before the position is read, so that this follower gets every digest from now on
    this.#followers.add(follower);
    try {
      const newest = await newestPosition(this.#ctx.db);
      const missed =
        after === undefined ? await recentDigest(this.#ctx, newest) : await digestSince(this.#ctx.db, after, newest);
      this.#watching?.poller.addHeldRuns(missed);
      follower.add(missed, newest);
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
    // a new poller each time, because a stopped one may still be at its last poll
    const watching = { poller: new ChangePoller(this.#ctx, position), stop: new AbortController() };
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

  async #run({ poller, stop: { signal } }: Watching): Promise<void> {
    const bell = makeHintBell(this.#ctx.hints, ['events']);
    try {
      while (!signal.aborted) {
        const digest = await poller.poll();
        if (signal.aborted) return;
        for (const follower of this.#followers) follower.add(digest, poller.position);
        await pause(paceMs, undefined, { signal }).catch(() => {});
        await bell.wait(sweepMs - paceMs, signal);
      }
    } finally {
      bell.close();
    }
  }
}

const watches = new WeakMap<Pool, ChangeWatch>();

/** The watch of a tenant. It lives as long as the tenant's pool. */
export function watchOf(ctx: ApiContext): ChangeWatch {
  const known = watches.get(ctx.pool) ?? new ChangeWatch(ctx);
  watches.set(ctx.pool, known);
  return known;
}
