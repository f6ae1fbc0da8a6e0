/**
 * Pauses and resumes subscribers, and changes their signing secrets.
 *
 * A paused subscriber keeps its position, and fan-out counts its events further: nothing is lost. A courier finishes the delivery
 * that is under way. `resume` continues, or moves the position first.
 */
import { MillraceError } from '../../errors.ts';
import { type Recording, recording } from '../../events/append.ts';
import type { Author, BusContext } from './context.ts';
import { deliverKey } from '../errand-keys.ts';
import { lockReaders, pushDeliveries, pushErrands, removeIdleErrands, revokeErrands } from './errands.ts';
import {
  addCounts,
  countEvents,
  type Counts,
  type LogPoint,
  placeReaders,
  positionAt,
  readLogEnds,
} from './positions.ts';
import { bumpRevision, clearFailures, lockById, type Subscriber, updateSecrets, updateState } from './queries.ts';
import { currentTerms, defaultTerms, isSameTerms, type Terms } from './revisions.ts';
import { formatSecret, newSecret, parseSecret } from './signature.ts';
import { subscriberNotFound } from './subscribe.ts';

/** Runs a change of one subscriber in its turn. */
async function changing<T>(
  ctx: BusContext,
  author: Author,
  id: string,
  work: (tx: Recording, subscriber: Subscriber, fanned: number) => Promise<T>,
): Promise<T> {
  const result = await recording(ctx.db, author, async (tx) => {
    const { fanned } = await bumpRevision(tx);
    const subscriber = await lockById(tx, id);
    if (subscriber === undefined) throw subscriberNotFound();
    return work(tx, subscriber, fanned);
  });
  ctx.hints.send('bus');
  return result;
}

export async function pauseSubscriber(ctx: BusContext, author: Author, id: string, reason: string | undefined) {
  await changing(ctx, author, id, async (tx, { name, state }) => {
    if (state === 'paused') return;
    await removeIdleErrands(tx, await lockReaders(tx, id));
    await updateState(tx, id, 'paused', reason ?? `paused by ${author.actor}`);
    tx.record('millrace_bus', { type: 'subscriber.paused', subject: id, body: { name, reason: reason ?? null } });
  });
}

/** Continues, from another position if one is given. */
export async function resumeSubscriber(ctx: BusContext, author: Author, id: string, from: LogPoint | undefined) {
  if (from === undefined) return continueSubscriber(ctx, author, id);
  for (let tries = 1; ; tries++) {
    if (await moveSubscriber(ctx, author, id, from)) return undefined;
    if (tries === maxMoves) throw new MillraceError('conflict', 'the subscription is changing too often; try again');
  }
}

const maxMoves = 5;

async function continueSubscriber(ctx: BusContext, author: Author, id: string): Promise<void> {
  await changing(ctx, author, id, async (tx, subscriber) => {
    await lockReaders(tx, id);
    await activate(tx, subscriber);
    if (subscriber.state === 'active') return;
    const body = { name: subscriber.name, before: subscriber.state };
    tx.record('millrace_bus', { type: 'subscriber.resumed', subject: id, body });
  });
}

/** Also for an active subscriber: a delivery that waits for its next attempt, or was set aside, is tried now. */
async function activate(tx: Recording, { id, kind }: Subscriber): Promise<void> {
  await updateState(tx, id, 'active', null);
  await clearFailures(tx, id);
  if (kind === 'http') await pushDeliveries(tx, id);
}

/** Returns false if the subscription or the log changed while its events were counted. */
async function moveSubscriber(ctx: BusContext, author: Author, id: string, point: LogPoint): Promise<boolean> {
  const from = await positionAt(ctx.db, point);
  const terms = (await currentTerms(ctx.db, id)) ?? defaultTerms;
  const ends = await readLogEnds(ctx.db);
  const counts: Counts =
    from === undefined ? new Map() : await countEvents(ctx.db, id, terms, { from, to: ends.fanned });
  return changing(ctx, author, id, async (tx, subscriber, fanned) => {
    if (!(await isUnchanged(tx, id, terms, ends.oldest))) return false;
    // a copy: the transaction may be repeated
    const queued: Counts = new Map(counts);
    if (from !== undefined) {
      addCounts(queued, await countEvents(tx, id, terms, { from: Math.max(from, ends.fanned), to: fanned }));
    }
    await updateState(tx, id, 'active', null);
    await clearFailures(tx, id);
    await revokeErrands(tx, await lockReaders(tx, id));
    if (subscriber.kind === 'http')
      await pushErrands(
        tx,
        'main',
        [...queued.keys()].map((strand) => deliverKey({ subscriber: id, strand })),
      );
    const position = await placeReaders(tx, id, from, queued);
    const body = { name: subscriber.name, before: subscriber.state, position: String(position) };
    tx.record('millrace_bus', { type: 'subscriber.resumed', subject: id, body });
    return true;
  });
}

async function isUnchanged(tx: Recording, id: string, terms: Terms, oldest: number): Promise<boolean> {
  const present = (await currentTerms(tx, id)) ?? defaultTerms;
  return isSameTerms(present, terms) && (await readLogEnds(tx)).oldest === oldest;
}

/** Adds a secret; the one before stays valid. Returns the new one, which is never shown again. */
export async function addSecret(
  ctx: BusContext,
  author: Author,
  id: string,
  own: string | undefined,
): Promise<{ secret: string; valid: number }> {
  const secret = own === undefined ? newSecret() : parseSecret(own);
  if (secret === undefined) {
    const message = 'write whsec_ and 24 to 64 bytes in Base64';
    const faults = [{ path: 'body.secret', message }];
    throw new MillraceError('bad_request', `body.secret: ${message}`, { faults });
  }
  return changing(ctx, author, id, async (tx, { name, secrets }) => {
    const kept = [ctx.secrets.encrypt(secret), ...secrets].slice(0, maxSecrets);
    await updateSecrets(tx, id, kept);
    tx.record('millrace_bus', { type: 'subscriber.secret_added', subject: id, body: { name, valid: kept.length } });
    return { secret: formatSecret(secret), valid: kept.length };
  });
}

const maxSecrets = 2;

/** Ends the older secret, or all. */
export async function endSecrets(ctx: BusContext, author: Author, id: string, all: boolean): Promise<void> {
  await changing(ctx, author, id, async (tx, { name, secrets }) => {
    const kept = all ? [] : secrets.slice(0, 1);
    if (kept.length === secrets.length) return;
    await updateSecrets(tx, id, kept);
    tx.record('millrace_bus', { type: 'subscriber.secret_ended', subject: id, body: { name, valid: kept.length } });
  });
}
