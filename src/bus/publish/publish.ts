/**
 * Publishes events: many requests in one commit.
 *
 * 1. Every request is validated before anything is written. A request that is refused claims no topic.
 * 2. A request is stored as a whole or not at all. Its answer is given after the commit.
 * 3. A request or event that a publisher repeats within 24 hours (`Idempotency-Key`, event id) is stored once.
 * 4. One wake-up follows each commit. If it is lost, the sweep of couriers finds the events.
 */
import type { Post, Posted, Refusal } from '../../contract/bus.ts';
import type { EngineContext } from '../../contract/context.ts';
import type { Fault } from '../../errors.ts';
import { type Db, onPool } from '../../kernel/sql.ts';
import { eventsPublished } from '../telemetry.ts';
import type { EventDraft } from './event-rules.ts';
import { checkpoint } from './checkpoints.ts';
import { EventTimes } from './event-times.ts';
import { Group, type Placed } from './group.ts';
import { appendBus, findTargets } from './queries.ts';
import { badRequest, readPost, type ValidPost } from './read-post.ts';

const defaultMaxDataBytes = 16 * 1024;
/** Requests with the same key at the same time are stored one after the other. Beyond this, publishers must try again. */
const maxRounds = 8;

/** Shared by all tenants: they rarely share URLs, and then a further millisecond does no harm. */
const times = new EventTimes();

interface Waiting {
  /** The index of its outcome. */
  readonly index: number;
  readonly post: ValidPost;
}

/** Returns one outcome for each request. */
export async function publish(ctx: EngineContext, posts: readonly Post[]): Promise<readonly Posted[]> {
  const outcomes: (Posted | undefined)[] = [];
  const valid: Waiting[] = [];
  const maxDataBytes = ctx.settings.bus?.maxDataBytes ?? defaultMaxDataBytes;
  for (const [index, each] of posts.entries()) {
    const post = readPost(each, maxDataBytes);
    if ('status' in post) outcomes[index] = { refused: post };
    else valid.push({ index, post });
  }
  const db = onPool(ctx.pool);
  const targets = await resolveTargets(db, valid);
  let waiting = valid.filter(({ index, post }) => {
    const fault = findTargetFault(post, targets);
    if (fault !== undefined) outcomes[index] = { refused: fault };
    return fault === undefined;
  });
  for (let round = 0; waiting.length > 0 && round < maxRounds; round++)
    waiting = await append(ctx, db, { waiting, targets, outcomes });
  return posts.map((_, index) => outcomes[index] ?? { refused: crowded });
}

const crowded: Refusal = {
  status: 503,
  code: 'overloaded',
  detail: 'too many requests with the same Idempotency-Key or event id at once; try again',
};

interface Work {
  readonly waiting: readonly Waiting[];
  readonly targets: ReadonlyMap<string, string>;
  readonly outcomes: (Posted | undefined)[];
}

/** Stores one group. Returns the requests that must wait for the next one. */
async function append(ctx: EngineContext, db: Db, { waiting, targets, outcomes }: Work): Promise<Waiting[]> {
  const group = new Group();
  const now = Math.floor(ctx.time.now());
  const placed: (Waiting & { readonly at: Placed })[] = [];
  const later: Waiting[] = [];
  for (const each of waiting) {
    const at = group.add(each.post, (event) => renderEvent(each.post.topic, event, now), targets);
    if (at === undefined) later.push(each);
    else placed.push({ ...each, at });
  }
  checkpoint('publish.append');
  const appended = await appendBus(db, group, new Date(now));
  checkpoint('publish.committed');
  for (const { index, at } of placed) outcomes[index] = group.outcomeOf(at, appended);
  announce(ctx, group, appended.numbers, appended.base);
  return later;
}

function announce(ctx: EngineContext, group: Group, numbers: readonly number[] | null, base: number): void {
  const stored = numbers === null ? group.bodies : group.bodies.filter((_, i) => (numbers[i] ?? 0) > base);
  if (stored.length === 0) return;
  ctx.hints.send('bus');
  const bytes = stored.reduce((sum, body) => sum + body.length, 0);
  eventsPublished.emit(ctx.telemetry, { tenant: ctx.tenant.id, events: stored.length, bytes });
}

/** The element of a delivery's array, without the end: the id is added when it is known. */
function renderEvent(topic: string, { type, url, timestamp, data }: EventDraft, now: number): string {
  const t = times.next(url, timestamp, now);
  const head = `{"topic":"${topic}","type":"${type}","url":${JSON.stringify(url)},"t":${t}`;
  return data === undefined ? head : `${head},"data":${data}`;
}

async function resolveTargets(db: Db, posts: readonly Waiting[]): Promise<Map<string, string>> {
  const wanted = new Set<string>();
  for (const { post } of posts) for (const { target } of post.events) if (target !== undefined) wanted.add(target);
  return wanted.size === 0 ? new Map() : findTargets(db, [...wanted]);
}

function findTargetFault(post: ValidPost, targets: ReadonlyMap<string, string>): Refusal | undefined {
  const faults = post.events.flatMap(({ target }, i): Fault[] => {
    if (target === undefined || targets.has(target)) return [];
    return [{ path: post.isBulk ? `[${i}].target` : 'target', message: `there is no subscriber ${target}` }];
  });
  return faults.length === 0 ? undefined : badRequest('bad event', faults);
}
