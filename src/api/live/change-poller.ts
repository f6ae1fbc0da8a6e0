/**
 * Polls a tenant for changes. Each poll reads the event log. Once a second it also compares state that has no events: runs that
 * a worker took or gave back, the fleet, what has become late, and the current minute. A poll reads at most one page of the
 * log; if there is more, the digest says `many`.
 */
import { type LoggedEvent, newestPosition, readEvents } from '../../events/queries.ts';
import { type Db, sql } from '../../kernel/sql.ts';
import type { ApiContext } from '../context.ts';
import { Digest } from './digest.ts';
import { type FleetPicture, fleetPicture } from '../fleet/handlers.ts';
import { latePicture } from '../overview/handlers.ts';

const pageSize = 500;
const compareEveryMs = 1_000;
const minuteMs = 60_000;
const maxHeldRuns = 2_000;
/** A follower that is more events behind than this must read everything again. */
const maxEventsBehind = 5_000;
/** A new follower gets the changes of this time. */
const recentMs = 5_000;

/** State without events, which is compared instead. */
const unlogged = ['fleet', 'scheduler', 'late', 'minute'] as const;

interface Held {
  /** null: a run of a node. */
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
  #comparedAt = Number.NEGATIVE_INFINITY;

  /** Starts at this position of the log. */
  constructor(ctx: ApiContext, position: number) {
    this.#ctx = ctx;
    this.#position = position;
  }

  get position(): number {
    return this.#position;
  }

  /** Returns what has changed since the last poll. */
  async poll(): Promise<Digest> {
    const digest = new Digest();
    await this.#readLog(digest);
    if (performance.now() - this.#comparedAt >= compareEveryMs) await this.#compareState(digest);
    return digest;
  }

  /** Adds all held runs, for a new follower. Other followers got them when they were taken. */
  addHeldRuns(digest: Digest): void {
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
    digest.mark('anyExecution');
    for (const event of await readWritten(db, this.#position, newest)) digest.addEvent(event);
    this.#position = Math.max(this.#position, newest);
  }

  async #compareState(digest: Digest): Promise<void> {
    const ctx = this.#ctx;
    const [held, fleet, late] = await Promise.all([listHeld(ctx.db), fleetPicture(ctx), latePicture(ctx)]);
    const picture = { held, ...fleet, late, minute: Math.floor(ctx.time.now() / minuteMs) };
    addHandChanges(digest, this.#picture?.held ?? new Map(), held);
    // the first poll only records the state
    const before = this.#picture ?? picture;
    for (const part of unlogged) if (before[part] !== picture[part]) digest.mark(part);
    this.#picture = picture;
    this.#comparedAt = performance.now();
  }
}

/** Adds runs that were taken, given back, or handed out again between two polls. */
function addHandChanges(digest: Digest, before: Picture['held'], now: Picture['held']): void {
  for (const [id, { job, lease }] of now) if (before.get(id)?.lease !== lease) digest.addRun(id, job);
  for (const [id, { job }] of before) if (!now.has(id)) digest.addRun(id, job);
}

/** The runs that workers hold, at most the `maxHeldRuns` that were taken last. */
async function listHeld(db: Db): Promise<Picture['held']> {
  const rows = await db.rows<{ id: string; job_id: string | null; lease: number }>(sql`
    select live.id, live.lease, task.job_id
      from live
      left join task on task.id = live.task_id
     where live.worker_id is not null
     order by live.claimed_at desc
     limit ${maxHeldRuns}`);
  return new Map(rows.map(({ id, job_id: job, lease }) => [id, { job, lease }]));
}

/** Events in a range, of all topics except runs. These topics have an index. */
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

/** The latest changes. A browser reads its page before it follows, and must not miss changes in between. */
export async function recentDigest({ db, time }: ApiContext, newest: number): Promise<Digest> {
  const digest = new Digest();
  const since = Math.max(0, newest - pageSize);
  const [page, written] = await Promise.all([
    readEvents(db, { after: since, limit: pageSize }),
    readWritten(db, Math.max(0, newest - maxEventsBehind), since),
  ]);
  const isRecent = ({ at }: LoggedEvent): boolean => at.getTime() > time.now() - recentMs;
  const recent = page.filter(isRecent);
  for (const event of [...recent, ...written.filter(isRecent)]) digest.addEvent(event);
  if (recent.length === pageSize) {
    digest.mark('many');
    digest.mark('anyExecution');
  }
  return digest;
}

/** What a disconnected browser missed. State without events is marked as changed. */
export async function digestSince(db: Db, after: number, newest: number): Promise<Digest> {
  const digest = new Digest();
  const { oldest } = await db.one<{ oldest: number | null }>(sql`select min(seq) as oldest from event`);
  if (after > newest || newest - after > maxEventsBehind || after + 1 < (oldest ?? 0)) {
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
