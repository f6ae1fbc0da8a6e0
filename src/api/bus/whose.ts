/** Finds the subscriber that a call is about: the caller's own, or the one that its path names. */
import type { Caller } from '../../contract/roles.ts';
import type { Identity } from '../../bus/subscribers/context.ts';
import { findById, findByIdentity, findByName, type Subscriber } from '../../bus/subscribers/queries.ts';
import { subscriberNotFound } from '../../bus/subscribers/subscribe.ts';
import { MillraceError } from '../../errors.ts';
import type { ApiContext } from '../context.ts';

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** A person who is signed in has no identity on the bus: only keys do. */
export function identityOf(caller: Caller | undefined): Identity {
  if (caller?.kind === 'key' && caller.identity !== undefined) return caller.identity;
  throw new MillraceError(
    'forbidden',
    'a subscriber belongs to a key: call with a key of the role client or subscriber',
  );
}

export async function ownSubscriber(ctx: ApiContext, caller: Caller | undefined): Promise<Subscriber> {
  const found = await findByIdentity(ctx.db, identityOf(caller).id);
  if (found === undefined) throw subscriberNotFound();
  return found;
}

/** By id or name. */
export async function namedSubscriber(ctx: ApiContext, key: string): Promise<Subscriber> {
  const found = uuid.test(key) ? await findById(ctx.db, key) : await findByName(ctx.db, key);
  if (found === undefined) throw new MillraceError('not_found', `subscriber not found: ${key}`);
  return found;
}

/** Clients see and change only what is their own; people and their keys see all of the tenant. */
export function isClient(caller: Caller | undefined): boolean {
  return caller?.kind === 'key' && (caller.role === 'client' || caller.role === 'subscriber');
}
