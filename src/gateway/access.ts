/** Keys, sessions and sign-in links. Making and revoking keys, and signing in, is told in the control database's event log. */
import { defaultTenant } from '../contract/tenants.ts';
import type { Role } from '../contract/roles.ts';
import { MillraceError } from '../errors.ts';
import { append } from '../events/append.ts';
import type { Handlers } from '../http/endpoint.ts';
import { newId } from '../kernel/id.ts';
import { findTenant } from '../launcher/control-queries.ts';
import { callerOf, cookieOf, hashOf, newSecret, sessionMs } from './callers.ts';
import type { GatewayContext } from './context.ts';
import * as queries from './control-queries.ts';
import type { gatewayEndpoints } from './endpoints.ts';

type Keys = Extract<
  keyof typeof gatewayEndpoints,
  `${string} /api/keys${string}` | `${string} /api/session${string}` | 'GET /api/me'
>;

const keyTopic = 2;
const linkMs = 10 * 60_000;
/** Roles that serve the whole installation. */
const untenanted = new Set<Role>(['root', 'conductor']);

export const accessHandlers: Handlers<Pick<typeof gatewayEndpoints, Keys>, GatewayContext> = {
  'POST /api/keys': async ({ body, caller }, context) => {
    const tenant = body.tenant ?? usualTenant(body.role);
    if (untenanted.has(body.role) && body.tenant !== undefined) {
      throw new MillraceError('bad_request', `a ${body.role} key serves the whole installation: leave tenant out`, {
        faults: [{ path: 'body.tenant', message: 'not for this role' }],
      });
    }
    const actor = caller?.kind === 'task' ? 'task' : (caller?.actor ?? '');
    return createKey(context, { name: body.name, role: body.role, tenant, actor });
  },
  'GET /api/keys': async (_, { control }) => {
    const rows = await queries.listKeys(control);
    return { items: rows.map((row) => ({ ...row, created_at: row.created_at.toISOString() })), next: null };
  },
  'DELETE /api/keys/{id}': async ({ params, caller }, { control, time, hub, callers }) => {
    const at = new Date(time.now());
    const actor = caller?.kind === 'task' ? 'task' : (caller?.actor ?? '');
    await control.transaction(async (tx) => {
      const row = await queries.revokeKey(tx, params.id, at);
      if (row === undefined) throw new MillraceError('not_found', `there is no key ${params.id}`);
      await append(tx, keyTopic, [{ type: 'key.revoked', subject: params.id, body: row }], { actor, at });
    });
    callers.forget();
    hub.send('keys', 'revoked');
  },
  'GET /api/me': async ({ caller }, { loader }) => {
    if (caller === undefined) throw new MillraceError('unauthenticated', 'nobody is signed in');
    if (caller.kind !== 'task') return { role: caller.role, tenant: caller.tenant, actor: caller.actor };
    const { name } = await loader.byId(caller.tenantId);
    return { role: 'task' as const, tenant: name, actor: `run:${caller.run}` };
  },
  'POST /api/session': async ({ body }, context) => {
    const who = 'link' in body ? await byLink(context, body.link) : await byKey(context, body.key);
    return openSession(context, who);
  },
  'DELETE /api/session': async ({ request }, { control, cookieName, secureCookies, hub }) => {
    const cookie = cookieOf(request, cookieName);
    const ended = cookie === undefined ? 0 : await queries.deleteSession(control, hashOf(cookie));
    // everybody may ask for this: who had no session makes nobody look up keys anew
    if (ended > 0) hub.send('keys', 'revoked');
    return new Response(null, { status: 204, headers: { 'set-cookie': cookieText(cookieName, '', 0, secureCookies) } });
  },
  'POST /api/session/links': async (_, context) => {
    const link = await newLink(context);
    return { url: link.url, expires_at: link.expiresAt.toISOString() };
  },
};

/** A worker key serves all tenants unless it names one. */
function usualTenant(role: Role): string | null {
  return untenanted.has(role) || role === 'worker' ? null : defaultTenant;
}

interface NewKey {
  readonly name: string;
  readonly role: Role;
  readonly tenant: string | null;
  readonly actor: string;
}

async function createKey({ control, time }: GatewayContext, key: NewKey) {
  const secret = newSecret('mrk_');
  const id = newId();
  const at = new Date(time.now());
  await control.transaction(async (tx) => {
    const tenant = key.tenant === null ? null : await findTenant(tx, key.tenant);
    if (tenant === undefined) {
      const fault = { path: 'body.tenant', message: `there is no tenant ${key.tenant}` };
      throw new MillraceError('bad_request', fault.message, { faults: [fault] });
    }
    const { name, role } = key;
    await queries.insertKey(tx, {
      id,
      name,
      role,
      tenantId: tenant?.id ?? null,
      hash: hashOf(secret),
      at,
      by: key.actor,
    });
    await append(tx, keyTopic, [{ type: 'key.created', subject: id, body: { name, role, tenant: key.tenant } }], {
      actor: key.actor,
      at,
    });
  });
  return { id, name: key.name, role: key.role, tenant: key.tenant, key: secret };
}

interface SignedIn {
  readonly keyId: string | null;
  readonly role: Role;
  readonly tenant: string | null;
  readonly actor: string;
}

async function byLink({ control, time }: GatewayContext, link: string): Promise<SignedIn> {
  if (await queries.spendLink(control, hashOf(link), new Date(time.now()))) {
    return { keyId: null, role: 'root', tenant: null, actor: 'sign-in link' };
  }
  throw new MillraceError('unauthenticated', 'this link is spent or too old; `millrace open` makes a new one');
}

async function byKey({ callers }: GatewayContext, secret: string): Promise<SignedIn> {
  const key = await callers.byKey(secret);
  if (key === undefined) throw new MillraceError('unauthenticated', 'this key is not known, or was revoked');
  return { keyId: key.id, ...callerOf(key) };
}

async function openSession(
  { control, time, cookieName, secureCookies }: GatewayContext,
  who: SignedIn,
): Promise<Response> {
  const cookie = newSecret('mrs_');
  const at = new Date(time.now());
  const until = new Date(at.getTime() + sessionMs);
  const { keyId, role, tenant, actor } = who;
  await control.transaction(async (tx) => {
    await queries.insertSession(tx, { hash: hashOf(cookie), keyId, role, actor, at, until });
    await append(tx, keyTopic, [{ type: 'session.opened', subject: keyId, body: { role, tenant } }], { actor, at });
  });
  await queries.pruneSessions(control, at);
  const headers = { 'set-cookie': cookieText(cookieName, cookie, sessionMs, secureCookies) };
  return Response.json({ role, tenant, actor }, { status: 201, headers });
}

function cookieText(name: string, value: string, lifeMs: number, secure: boolean): string {
  return `${name}=${value}; Path=/; HttpOnly; SameSite=Strict; Max-Age=${Math.floor(lifeMs / 1000)}${secure ? '; Secure' : ''}`;
}

/** The secret is in the fragment, which no server log or prefetch ever sees; the page's POST spends it. */
export async function newLink({
  control,
  time,
  publicUrl,
}: Pick<GatewayContext, 'control' | 'time' | 'publicUrl'>): Promise<{ url: string; expiresAt: Date }> {
  const secret = newSecret('mrl_');
  const at = new Date(time.now());
  const expiresAt = new Date(at.getTime() + linkMs);
  await queries.insertLink(control, hashOf(secret), at, expiresAt);
  return { url: `${publicUrl()}/signin#${secret}`, expiresAt };
}
