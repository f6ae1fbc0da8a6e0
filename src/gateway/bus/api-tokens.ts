/**
 * Routemaster's `api_tokens`. A token is the secret of a client key; only its hash is stored (I12). A path may have one, so no
 * path below `api_tokens/` is logged.
 */
import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import { everyone } from '../../contract/channels.ts';
import { actorOf, type Caller } from '../../contract/roles.ts';
import type { TenantRow } from '../../control/queries.ts';
import { MillraceError } from '../../errors.ts';
import { append, keyTopic } from '../../events/append.ts';
import { parsePart } from '../../http/body.ts';
import type { Handlers } from '../../http/endpoint.ts';
import { newId } from '../../kernel/id.ts';
import type { Db } from '../../kernel/sql.ts';
import { findKeyFault } from '../../kernel/text/secret-text.ts';
import { callerOf, hashOf, hashPresented } from '../access/callers.ts';
import type { GatewayContext } from '../installation/context.ts';
import * as queries from '../installation/queries.ts';
import type { tokenEndpoints } from './api-token-endpoints.ts';

const tokenWish = z.object({
  name: z.string().regex(/^[a-z0-9:_-]{1,64}$/, { error: 'use 1 to 64 of the characters a-z, 0-9, :, _ and -' }),
  token: z
    .string()
    .superRefine((token, context) => {
      const message = findKeyFault(token, 'a token');
      if (message !== undefined) context.addIssue({ code: 'custom', message });
    })
    .nullish(),
});

/** A generated token has at most 64 characters, the most that Routemaster's client accepts. */
const maxNameOfGenerated = 30;

export const tokenHandlers: Handlers<typeof tokenEndpoints, GatewayContext> = {
  'POST /bus/api_tokens': async ({ body, caller }, context) => {
    const wish = parsePart(tokenWish, parseJson(body), 'body') as z.output<typeof tokenWish>;
    const token = wish.token ?? generate(wish.name);
    await create(context, { name: wish.name, token, actor: actorIn(caller) });
    return { name: wish.name, token };
  },
  'GET /bus/api_tokens': async (_, context) => {
    const { id } = await tenantOf(context);
    const rows = await queries.listClientKeys(context.control, id, new Date(context.time.now()));
    return rows.map((row) => ({ name: row.name, token: row.id }));
  },
  'DELETE /bus/api_tokens/{token}': async ({ params: { token }, caller }, context) => {
    const tenant = await tenantOf(context);
    const wanted = { id: z.guid().safeParse(token).data ?? null, hash: hashPresented(token) ?? null };
    const key = await queries.findClientKey(context.control, tenant.id, wanted);
    // 204 for an unknown one, as in the original
    if (key !== undefined) await revoke(context, tenant, key, actorIn(caller));
  },
};

/** A path without the secret that it may have. */
export function withoutToken(path: string): string {
  return path.replace(/(\/api_tokens\/).+$/, '$1…');
}

function actorIn(caller: Caller | undefined): string {
  return caller === undefined ? '' : actorOf(caller);
}

function tenantOf({ loader, tenant }: GatewayContext): Promise<TenantRow> {
  return loader.find(tenant);
}

/** The parser's message would quote the body, which may have a secret. */
function parseJson(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString());
  } catch {
    throw new MillraceError('bad_request', 'the body is not JSON');
  }
}

function generate(name: string): string {
  if (name.length > maxNameOfGenerated) {
    const message = `may have at most ${maxNameOfGenerated} characters if no token is given`;
    throw new MillraceError('bad_request', `body.name: ${message}`, { faults: [{ path: 'body.name', message }] });
  }
  return `${name.replaceAll(':', '-')}--${randomBytes(16).toString('hex')}`;
}

interface NewToken {
  readonly name: string;
  readonly token: string;
  readonly actor: string;
}

async function create(context: GatewayContext, { name, token, actor }: NewToken): Promise<void> {
  const { control, time, hub, callers } = context;
  const tenant = await tenantOf(context);
  const at = new Date(time.now());
  const id = newId();
  await control.transaction(async (tx) => {
    const key = { id, name, hash: hashOf(token), tenantId: tenant.id, at, by: actor };
    if (!(await queries.putClientToken(tx, key)))
      throw new MillraceError('conflict', 'this token belongs to another key; choose another one');
    const body = { name, role: 'client', tenant: tenant.name };
    await append(tx, keyTopic, [{ type: 'key.created', subject: id, body }], { actor, at });
  });
  // that the token is not known may be remembered
  callers.forget();
  hub.send('revoked', everyone);
}

/** The original removes the subscriber with the token. Topics stay claimed. The other secret of a rotated key keeps both. */
async function revoke(context: GatewayContext, tenant: TenantRow, key: queries.KeyRow, actor: string): Promise<void> {
  const { control, time, hub, callers } = context;
  const at = new Date(time.now());
  const end = async (tx: Db): Promise<void> => {
    const row = await queries.revokeKey(tx, key.id, at);
    if (row !== undefined)
      await append(tx, keyTopic, [{ type: 'key.revoked', subject: key.id, body: row }], { actor, at });
  };
  const isRevoked = await control.transaction(async (tx) => {
    if (!(await queries.hasOtherSecret(tx, key, at))) return false;
    await end(tx);
    return true;
  });
  // the subscriber goes first: if it cannot, the token stays, and revoking it can be repeated
  if (!isRevoked) {
    await removeSubscriber(context, tenant, key);
    await control.transaction(end);
  }
  callers.forget();
  hub.send('revoked', everyone);
}

async function removeSubscriber({ loader }: GatewayContext, tenant: TenantRow, key: queries.KeyRow): Promise<void> {
  const remove = new Request('http://in-process/bus/subscriber', { method: 'DELETE' });
  const removed = await loader.fetch(tenant, remove, callerOf(key));
  await removed.body?.cancel();
  if (removed.status >= 500) throw new MillraceError('tenant_unavailable', 'its subscriber cannot be removed now');
}
