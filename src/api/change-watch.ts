/**
 * One watch over a tenant for all the browsers that look at it: it follows the event log, and looks now and then at what
 * has no events (runs that were taken, the fleet, what is late). Whoever follows gets digests, merged while it is slow, so
 * neither a busy tenant nor a sleepy browser costs memory. It runs while somebody follows, and never reads more of the log
 * than a page: what is further behind is `many`.
 */
import { setTimeout as pause } from 'node:timers/promises';
import type { Pool } from 'pg';
import { hangBell } from '../events/bell.ts';
import { type LoggedEvent, newestPosition, readEvents } from '../events/queries.ts';
import { Bell } from '../kernel/bell.ts';
import { type Db, sql } from '../kernel/sql.ts';
import { systemTime } from '../kernel/time.ts';
import type { ApiContext } from './context.ts';
import { Digest } from './digest.ts';
import { fleetPicture } from './fleet.ts';
import { latePicture } from './overview.ts';

const pageSize = 500;
/** Between two looks at the log, however often it rings. */
const paceMs = 100;
const lookAroundMs = 1_000;
const mostHeld = 2_000;
/** Whoever was away for longer than this reads everything again. */
const furthestBehind = 5_000;
/** This much of the past a new follower is told. */
const lateMs = 5_000;

/** One browser's place: what it has not been told yet. */
export class Follower {
  readonly bell = new Bell(systemTime);
  readonly begunAt: number;
  #pending = new Digest();
  #position: number;
  #failure: Error | undefined;

  constructor(position: number) {
    this.begunAt = position;
    this.#position = position;
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
  take(): { readonly digest: Digest; readonly position: number } {
    if (this.#failure !== undefined) throw this.#failure;
    const digest = this.#pending;
    this.#pending = new Digest();
    return { digest, position: this.#position };
  }
}

export class ChangeWatch {
  readonly #ctx: ApiContext;
  readonly #followers = new Set<Follower>();
  #stop: AbortController | undefined;
  #position = 0;
  #held = new Set<string>();
  #fleet = '';
  #late = '';
  #lookedAt = Number.NEGATIVE_INFINITY;

  constructor(ctx: ApiContext) {
    this.#ctx = ctx;
  }

  /** From the newest event on, or from the position named. */
  async follow(after: number | undefined): Promise<Follower> {
    const newest = await newestPosition(this.#ctx.db);
    const follower = new Follower(newest);
    this.#followers.add(follower);
    this.#begin(newest);
    try {
      const missed =
        after === undefined ? await digestOfLate(this.#ctx, newest) : await digestSince(this.#ctx.db, after, newest);
      follower.tell(missed, newest);
    } catch (error) {
      this.leave(follower);
      throw error;
    }
    return follower;
  }

  leave(follower: Follower): void {
    this.#followers.delete(follower);
    if (this.#followers.size === 0) this.#end();
  }

  #begin(position: number): void {
    if (this.#stop !== undefined) return;
    const stop = new AbortController();
    this.#stop = stop;
    this.#position = position;
    this.#lookedAt = Number.NEGATIVE_INFINITY;
    this.#held = new Set();
    this.#fleet = '';
    this.#late = '';
    void this.#run(stop.signal).catch((error: unknown) => {
      if (this.#stop !== stop) return;
      this.#end();
      for (const follower of this.#followers) follower.fail(error);
      this.#followers.clear();
    });
  }

  #end(): void {
    this.#stop?.abort();
    this.#stop = undefined;
  }

  async #run(signal: AbortSignal): Promise<void> {
    const bell = hangBell(this.#ctx.wake, this.#ctx.tenant.id, ['events']);
    try {
      while (!signal.aborted) {
        const digest = new Digest();
        await this.#readLog(digest);
        if (performance.now() - this.#lookedAt >= lookAroundMs) await this.#lookAround(digest);
        if (signal.aborted) return;
        for (const follower of this.#followers) follower.tell(digest, this.#position);
        await pause(paceMs);
        await bell.wait(lookAroundMs - paceMs, signal);
      }
    } finally {
      bell.close();
    }
  }

  async #readLog(digest: Digest): Promise<void> {
    const { db } = this.#ctx;
    const page = await readEvents(db, { after: this.#position, limit: pageSize });
    for (const event of page) digest.addEvent(event);
    this.#position = page.at(-1)?.seq ?? this.#position;
    if (page.length < pageSize) return;
    const newest = await newestPosition(db);
    digest.mark('many');
    for (const event of await readWritten(db, this.#position, newest)) digest.addEvent(event);
    this.#position = Math.max(this.#position, newest);
  }

  /** What has no events. The first look only learns how things are. */
  async #lookAround(digest: Digest): Promise<void> {
    const isFirst = this.#lookedAt === Number.NEGATIVE_INFINITY;
    const ctx = this.#ctx;
    const [held, fleet, late] = await Promise.all([listHeld(ctx.db), fleetPicture(ctx), latePicture(ctx)]);
    this.#lookedAt = performance.now();
    for (const { id, job_id } of held) if (!this.#held.has(id)) digest.addRun(id, job_id);
    this.#held = new Set(held.map(({ id }) => id));
    if (!isFirst && fleet !== this.#fleet) digest.mark('fleet');
    if (!isFirst && late !== this.#late) digest.mark('late');
    this.#fleet = fleet;
    this.#late = late;
  }
}

/** Runs that workers hold: as many as there are places, at most those that were taken last. */
function listHeld(db: Db): Promise<{ id: string; job_id: string }[]> {
  return db.rows(sql`
    select live.id, task.job_id
      from live
      join task on task.id = live.task_id
     where live.worker_id is not null
     order by live.claimed_at desc
     limit ${mostHeld}`);
}

/** Events of all topics but the runs', which have an index of their own, in a range. */
function readWritten(db: Db, after: number, upTo: number): Promise<LoggedEvent[]> {
  return db.rows<LoggedEvent>(sql`
    select event.seq, topic.name as topic, event.type, event.subject, event.actor, event.cause, event.at, event.body
      from topic
     cross join lateral (
       select event.*
         from event
        where event.topic_id = topic.id and event.topic_id <> 3 and event.seq > ${after} and event.seq <= ${upTo}
        order by event.seq desc
        limit ${pageSize}
     ) as event`);
}

/** What changed in the last moments: a browser reads its page first and follows then, and must not miss what lay between. */
async function digestOfLate({ db, time }: ApiContext, newest: number): Promise<Digest> {
  const digest = new Digest();
  const page = await readEvents(db, { after: Math.max(0, newest - pageSize), limit: pageSize });
  const late = page.filter(({ at }) => at.getTime() > time.now() - lateMs);
  for (const event of late) digest.addEvent(event);
  if (late.length === pageSize) digest.mark('many');
  return digest;
}

/** What a browser missed that was away. Runs that were taken meanwhile are the next look's to tell. */
async function digestSince(db: Db, after: number, newest: number): Promise<Digest> {
  const digest = new Digest();
  const { oldest } = await db.one<{ oldest: number | null }>(sql`select min(seq) as oldest from event`);
  if (after > newest || newest - after > furthestBehind || after + 1 < (oldest ?? 0)) {
    digest.mark('all');
    return digest;
  }
  let position = after;
  while (position < newest) {
    const page = await readEvents(db, { after: position, limit: pageSize });
    for (const event of page) digest.addEvent(event);
    position = page.at(-1)?.seq ?? newest;
  }
  digest.mark('fleet');
  return digest;
}

const watches = new WeakMap<Pool, ChangeWatch>();

/** The watch of a tenant, which lives and dies with its pool. */
export function watchOf(ctx: ApiContext): ChangeWatch {
  const known = watches.get(ctx.pool) ?? new ChangeWatch(ctx);
  watches.set(ctx.pool, known);
  return known;
}
