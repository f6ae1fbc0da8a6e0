/**
 * One look after another at a tenant: what the event log says, and now and then what has no events: runs that a worker
 * took or gave back, the fleet, what has become late, and that another minute has begun. It reads at most a page of the
 * log at a time; what is further behind is `many`.
 */
import { type LoggedEvent, newestPosition, readEvents } from '../../events/queries.ts';
import { type Db, sql } from '../../kernel/sql.ts';
import type { ApiContext } from '../context.ts';
import { Digest } from './digest.ts';
import { type FleetPicture, fleetPicture } from '../fleet/handlers.ts';
import { latePicture } from '../overview/handlers.ts';

const pageSize = 500;
const lookAroundMs = 1_000;
const minuteMs = 60_000;
const mostHeld = 2_000;
/** Whoever was away for longer than this reads everything again. */
const furthestBehind = 5_000;
/** This much of the past a new follower is told. */
const recentMs = 5_000;

/** What is looked at, because no event tells of it. */
const unlogged = ['fleet', 'scheduler', 'late', 'minute'] as const;

interface Held {
  /** Null: a run of a node. */
  readonly job: string | null;
  readonly lease: number;
}

interface Picture extends FleetPicture {
  readonly held: ReadonlyMap<string, Held>;
  readonly late: string;
  readonly minute: number;
}

export class ChangePoller {
  readonly #ctx: ApiContext;
  #position: number;
  #picture: Picture | undefined;
  #lookedAt = Number.NEGATIVE_INFINITY;

  /** From that position of the log on. */
  constructor(ctx: ApiContext, position: number) {
    this.#ctx = ctx;
    this.#position = position;
  }

  get position(): number {
    return this.#position;
  }

  /** What has changed since the last look. */
  async look(): Promise<Digest> {
    const digest = new Digest();
    await this.#readLog(digest);
    if (performance.now() - this.#lookedAt >= lookAroundMs) await this.#lookAround(digest);
    return digest;
  }

  /** For who comes later: the runs that are held were told to the others when they were taken. */
  tellHeld(digest: Digest): void {
    for (const [id, { job }] of this.#picture?.held ?? []) digest.addRun(id, job);
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

  async #lookAround(digest: Digest): Promise<void> {
    const ctx = this.#ctx;
    const [held, fleet, late] = await Promise.all([listHeld(ctx.db), fleetPicture(ctx), latePicture(ctx)]);
    const picture = { held, ...fleet, late, minute: Math.floor(ctx.time.now() / minuteMs) };
    tellHands(digest, this.#picture?.held ?? new Map(), held);
    // the first look only learns how things are
    const before = this.#picture ?? picture;
    for (const part of unlogged) if (before[part] !== picture[part]) digest.mark(part);
    this.#picture = picture;
    this.#lookedAt = performance.now();
  }
}

/** Runs that came into other hands: taken, given back, or handed out again between two looks. */
function tellHands(digest: Digest, before: Picture['held'], now: Picture['held']): void {
  for (const [id, { job, lease }] of now) if (before.get(id)?.lease !== lease) digest.addRun(id, job);
  for (const [id, { job }] of before) if (!now.has(id)) digest.addRun(id, job);
}

/** Runs that workers hold: as many as there are places, at most those that were taken last. */
async function listHeld(db: Db): Promise<Picture['held']> {
  const rows = await db.rows<{ id: string; job_id: string | null; lease: number }>(sql`
    select live.id, live.lease, task.job_id
      from live
      left join task on task.id = live.task_id
     where live.worker_id is not null
     order by live.claimed_at desc
     limit ${mostHeld}`);
  return new Map(rows.map(({ id, job_id: job, lease }) => [id, { job, lease }]));
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
export async function recentDigest({ db, time }: ApiContext, newest: number): Promise<Digest> {
  const digest = new Digest();
  const since = Math.max(0, newest - pageSize);
  const [page, written] = await Promise.all([
    readEvents(db, { after: since, limit: pageSize }),
    readWritten(db, Math.max(0, newest - furthestBehind), since),
  ]);
  const isRecent = ({ at }: LoggedEvent): boolean => at.getTime() > time.now() - recentMs;
  const recent = page.filter(isRecent);
  for (const event of [...recent, ...written.filter(isRecent)]) digest.addEvent(event);
  if (recent.length === pageSize) digest.mark('many');
  return digest;
}

/** What a browser missed that was away, but for what has no events. */
export async function digestSince(db: Db, after: number, newest: number): Promise<Digest> {
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
  for (const mark of unlogged) digest.mark(mark);
  return digest;
}
