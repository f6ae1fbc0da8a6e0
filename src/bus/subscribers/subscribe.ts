/**
 * Subscribes, changes and removes subscribers.
 *
 * 1. Everything is checked before anything is written. The change, its revision and its event are one commit.
 * 2. Changes of all subscribers of a tenant take turns: each bumps `bus_state.revision` first, which also tells couriers to read
 *    the subscriptions again. Lock order: bus_state, subscriber, reader, errand, the bus log.
 * 3. A revision begins at the newest event. Events before it still go by the revision before.
 * 4. A subscription with the same content writes no revision.
 */
import { randomBytes } from 'node:crypto';
import { MillraceError } from '../../errors.ts';
import { type Recording, recording } from '../../events/append.ts';
import { newId } from '../../kernel/id.ts';
import { relayKey } from '../errand-keys.ts';
import { beginRelay } from '../relay/queries.ts';
import type { Author, BusContext, Identity } from './context.ts';
import { lockReaders, pushDeliveries, pushErrands, removeErrands, removeIdleErrands } from './errands.ts';
import { endLeases } from './pull-queries.ts';
import {
  bumpRevision,
  clearFailures,
  deleteSubscriber,
  findById,
  findByIdentity,
  insertSubscriber,
  lockById,
  type Subscriber,
  type SubscriberSettings,
  updateIdentity,
  updateSettings,
  updateState,
} from './queries.ts';
import { checkTermsSize, currentTerms, defaultTerms, isSameTerms, type Terms, writeRevision } from './revisions.ts';
import { announceSubscribers, noteSubscribers } from './standing.ts';
import { checkTopics, findOrCreateTopics, findTopicId, includesLifecycle } from './topics.ts';
import { mergeSettings, mergeTerms, type Wish } from './wish.ts';

const newSettings: SubscriberSettings = {
  kind: 'http',
  callback: null,
  credential: null,
  rate: null,
  max_attempts: null,
  max_age_ms: null,
  request_ms: null,
};

export const subscriberNotFound = (): MillraceError => new MillraceError('not_found', 'subscriber not found');

/** Routemaster's subscription: the topics, the callback and the user name are replaced, other fields keep their values. */
export async function subscribe(ctx: BusContext, author: Author, identity: Identity, wish: Wish): Promise<void> {
  const known = await findByIdentity(ctx.db, identity.id);
  // replaced as a whole: without a user name, deliveries carry none
  const whole = { ...wish, uuid: wish.uuid ?? null };
  checkWish(ctx, known, whole);
  if (known === undefined) await announceSubscribers(ctx, 1);
  await recording(ctx.db, author, async (tx) => {
    await bumpRevision(tx);
    const own = await findByIdentity(tx, identity.id);
    const present = own && (await lockById(tx, own.id));
    if (present === undefined) await create(ctx, tx, author, identity, whole);
    else await change(ctx, tx, author, present, whole);
    if (present?.state === 'disabled') await reactivate(tx, present.id);
  });
  if (known === undefined) await noteSubscribers(ctx);
  ctx.hints.send('bus');
}

export async function changeSubscriber(ctx: BusContext, author: Author, id: string, wish: Wish): Promise<void> {
  const known = await findById(ctx.db, id);
  if (known === undefined) throw subscriberNotFound();
  checkWish(ctx, known, wish);
  await recording(ctx.db, author, async (tx) => {
    await bumpRevision(tx);
    const present = await lockById(tx, id);
    if (present === undefined) throw subscriberNotFound();
    await change(ctx, tx, author, present, wish);
  });
  ctx.hints.send('bus');
}

/** Throws before the transaction, so that a bad request locks nothing. */
function checkWish(ctx: BusContext, known: Subscriber | undefined, wish: Wish): void {
  checkTopics(wish.topics ?? []);
  settingsOf(ctx, known ?? newSettings, wish);
  mergeTerms(defaultTerms, wish, []);
}

function settingsOf(ctx: BusContext, present: SubscriberSettings, wish: Wish): SubscriberSettings {
  const allowHttp = ctx.settings.bus?.allowHttp === true;
  return mergeSettings(present, wish, { allowHttp, encrypt: (plain) => ctx.secrets.encrypt(plain) });
}

async function create(ctx: BusContext, tx: Recording, author: Author, identity: Identity, wish: Wish): Promise<void> {
  const id = newId();
  const name = nameOf(identity);
  const settings = settingsOf(ctx, newSettings, wish);
  await insertSubscriber(tx, { ...settings, id, name, identity: identity.id, created_at: author.at });
  const topics = await topicsOf(tx, author, wish);
  await checkTermsSize(tx);
  await writeRevision(tx, id, mergeTerms(defaultTerms, wish, topics));
  tx.record('millrace_bus', { type: 'subscriber.created', subject: id, body: { name, ...auditOf(wish) } });
}

async function change(ctx: BusContext, tx: Recording, author: Author, present: Subscriber, wish: Wish): Promise<void> {
  const { id, name } = present;
  const settings = settingsOf(ctx, present, wish);
  const keys = await lockReaders(tx, id);
  if (settings.kind !== present.kind && settings.kind === 'pull') await removeIdleErrands(tx, keys);
  await updateSettings(tx, id, settings);
  if (settings.kind !== present.kind) await endLeases(tx, id);
  if (settings.kind !== present.kind && settings.kind === 'http' && present.state === 'active') {
    await pushDeliveries(tx, id);
  }
  const topics = await topicsOf(tx, author, wish);
  await reviseIfChanged(tx, id, (terms) => mergeTerms(terms, wish, topics));
  tx.record('millrace_bus', { type: 'subscriber.changed', subject: id, body: { name, ...auditOf(wish) } });
}

async function topicsOf(tx: Recording, author: Author, { topics }: Wish): Promise<number[] | undefined> {
  if (topics === undefined) return undefined;
  if (includesLifecycle(topics)) {
    await pushErrands(tx, 'aux', [relayKey]);
    await beginRelay(tx, author.at);
  }
  return findOrCreateTopics(tx, topics, author.at);
}

/** As the last step: it holds the lock of the bus log. */
async function reviseIfChanged(tx: Recording, id: string, revise: (terms: Terms) => Terms): Promise<void> {
  const present = await currentTerms(tx, id);
  const revised = revise(present ?? defaultTerms);
  if (present !== undefined && isSameTerms(present, revised)) return;
  await checkTermsSize(tx);
  await writeRevision(tx, id, revised);
}

/** The receiver that said 410 has subscribed again. A paused subscriber stays paused. */
async function reactivate(tx: Recording, id: string): Promise<void> {
  await updateState(tx, id, 'active', null);
  await clearFailures(tx, id);
  await pushDeliveries(tx, id);
}

/** A user name is a secret. */
function auditOf({ uuid, ...rest }: Wish): Record<string, unknown> {
  return uuid === undefined ? rest : { ...rest, uuid: uuid === null ? null : 'changed' };
}

/** `<name of the key>--<8 hex digits>`, with the characters of Routemaster's names. */
function nameOf({ name }: Identity): string {
  const service = name
    .toLowerCase()
    .replaceAll(/[^a-z0-9:_-]+/g, '-')
    .slice(0, 54);
  return `${service === '' ? 'key' : service}--${randomBytes(4).toString('hex')}`;
}

export async function unsubscribe(ctx: BusContext, author: Author, id: string, topic: string): Promise<void> {
  await recording(ctx.db, author, async (tx) => {
    await bumpRevision(tx);
    const present = await lockById(tx, id);
    if (present === undefined) throw subscriberNotFound();
    const topicId = await findTopicId(tx, topic);
    if (topicId === undefined) throw new MillraceError('not_found', 'topic not found');
    const terms = await currentTerms(tx, id);
    if (terms?.topics.includes(topicId) !== true) throw new MillraceError('not_found', 'not subscribed');
    await writeRevision(tx, id, { ...terms, topics: terms.topics.filter((other) => other !== topicId) });
    const body = { name: present.name, topic };
    tx.record('millrace_bus', { type: 'subscriber.unsubscribed', subject: id, body });
  });
  ctx.hints.send('bus');
}

export async function removeSubscriber(ctx: BusContext, author: Author, id: string): Promise<void> {
  await recording(ctx.db, author, async (tx) => {
    await bumpRevision(tx);
    const present = await lockById(tx, id);
    if (present === undefined) throw subscriberNotFound();
    await removeErrands(tx, id, await lockReaders(tx, id));
    await deleteSubscriber(tx, id);
    tx.record('millrace_bus', { type: 'subscriber.deleted', subject: id, body: { name: present.name } });
  });
  await noteSubscribers(ctx);
  ctx.hints.send('bus');
}

/** Gives a subscriber to the identity of another key. */
export async function transferSubscriber(ctx: BusContext, author: Author, id: string, identity: string): Promise<void> {
  await recording(ctx.db, author, async (tx) => {
    await bumpRevision(tx);
    const present = await lockById(tx, id);
    if (present === undefined) throw subscriberNotFound();
    const other = await findByIdentity(tx, identity);
    if (other?.id === id) return;
    if (other !== undefined) throw new MillraceError('conflict', `the key already has the subscriber ${other.name}`);
    await updateIdentity(tx, id, identity);
    const body = { name: present.name, identity, before: present.identity };
    tx.record('millrace_bus', { type: 'subscriber.transferred', subject: id, body });
  });
}
