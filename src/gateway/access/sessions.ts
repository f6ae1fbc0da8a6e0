/** Browser sessions and sign-in links. Opening, ending or refusing one appends an event to the control database. */
import { everyone } from '../../contract/channels.ts';
import { actorOf } from '../../contract/roles.ts';
import type { Role } from '../../contract/roles.ts';
import { MillraceError } from '../../errors.ts';
import { append, keyTopic } from '../../events/append.ts';
import type { Handlers } from '../../http/endpoint.ts';
import { cutPage } from '../../http/page.ts';
import { newId } from '../../kernel/id.ts';
import { newSecret } from '../../kernel/text/secret-text.ts';
import { callerOf, cookieOf, hashOf, hashPresented, sessionMs } from './callers.ts';
import type { GatewayContext } from '../installation/context.ts';
import type { gatewayEndpoints } from '../installation/endpoints.ts';
import * as queries from './session-queries.ts';

type Sessions = Extract<keyof typeof gatewayEndpoints, `${string} /api/session${string}`>;

const linkMs = 10 * 60_000;

export const sessionHandlers: Handlers<Pick<typeof gatewayEndpoints, Sessions>, GatewayContext> = {
  'POST /api/session': async ({ body }, context) => {
    const who = 'link' in body ? await signInByLink(context, body.link) : await signInByKey(context, body.key);
    return openSession(context, who);
  },
  'DELETE /api/session': async ({ request }, context) => {
    const { cookieName, secureCookies } = context;
    const hash = hashPresented(cookieOf(request, cookieName) ?? '');
    // this needs no key: a caller without a session changes nothing
    if (hash !== undefined) await endSession(context, { hash });
    return new Response(null, {
      status: 204,
      headers: { 'set-cookie': formatCookie(cookieName, '', 0, secureCookies) },
    });
  },
  'POST /api/session/links': async ({ request, caller }, context) => {
    const link = await makeLink(context, context.callers.hashFor(request, caller));
    return { url: link.url, expires_at: link.expiresAt.toISOString() };
  },
  'GET /api/sessions': async ({ query: { limit, cursor }, request, caller }, { control, time, callers }) => {
    const own = callers.hashFor(request, caller);
    const rows = await queries.listSessions(control, new Date(time.now()), { after: cursor, limit: limit + 1 });
    return cutPage(rows, { limit, render: (row) => renderSession(row, own), cursorOf: ({ id }) => id });
  },
  'DELETE /api/sessions/{id}': async ({ params, caller }, context) => {
    const ended = await endSession(context, { id: params.id }, caller && actorOf(caller));
    if (!ended) throw new MillraceError('not_found', `there is no session ${params.id}`);
  },
  'DELETE /api/sessions': async ({ request, caller }, { control, time, hub, callers }) => {
    const actor = caller === undefined ? '' : actorOf(caller);
    const at = new Date(time.now());
    const ended = await control.transaction(async (tx) => {
      const count = await queries.endSessions(tx, callers.hashFor(request, caller));
      const event = { type: 'session.ended', subject: null, body: { count } };
      if (count > 0) await append(tx, keyTopic, [event], { actor, at });
      return count;
    });
    if (ended > 0) hub.send('revoked', everyone);
    return { ended };
  },
};

function renderSession(row: queries.ListedSession, own: Buffer | undefined) {
  const { id, actor, role, tenant, hash, keyId, keyName, openedWith, createdAt, expiresAt } = row;
  return {
    id,
    actor,
    role,
    tenant,
    key: { id: keyId, name: keyName },
    opened_with: openedWith,
    created_at: createdAt.toISOString(),
    used_at: new Date(expiresAt.getTime() - sessionMs).toISOString(),
    expires_at: expiresAt.toISOString(),
    current: own !== undefined && hash.equals(own),
  };
}

/** Without `actor`, the session ended itself. */
async function endSession(
  { control, time, hub }: GatewayContext,
  by: { id: string } | { hash: Buffer },
  actor?: string,
): Promise<boolean> {
  const at = new Date(time.now());
  const ended = await control.transaction(async (tx) => {
    const row = await queries.endSession(tx, by);
    if (row === undefined) return undefined;
    const body = { name: row.actor, role: row.role };
    await append(tx, keyTopic, [{ type: 'session.ended', subject: row.id, body }], { actor: actor ?? row.actor, at });
    return row;
  });
  if (ended !== undefined) hub.send('revoked', everyone);
  return ended !== undefined;
}

interface SignedIn {
  readonly keyId: string;
  readonly keyName: string;
  readonly openedWith: queries.OpenedWith;
  readonly role: Role;
  readonly tenant: string | null;
  readonly actor: string;
}

async function signInByLink(
  { control, time, rejectedCredentials, remote }: GatewayContext,
  link: string,
): Promise<SignedIn> {
  const hash = hashPresented(link);
  const key = hash && (await queries.spendLink(control, hash, new Date(time.now())));
  if (key !== undefined) {
    const { id: keyId, name: keyName } = key;
    return { keyId, keyName, openedWith: 'link', role: 'root', tenant: null, actor: 'sign-in link' };
  }
  rejectedCredentials.note('sign-in link', remote);
  throw new MillraceError('unauthenticated', 'this link is spent or too old; `millrace open` makes a new one');
}

async function signInByKey(
  { callers, rejectedCredentials, remote }: GatewayContext,
  secret: string,
): Promise<SignedIn> {
  const key = await callers.byKey(secret);
  if (key !== undefined) return { keyId: key.id, keyName: key.name, openedWith: 'key', ...callerOf(key) };
  rejectedCredentials.note('sign-in key', remote);
  throw new MillraceError('unauthenticated', 'this key is not known, or was revoked');
}

async function openSession(
  { control, time, cookieName, secureCookies, remote }: GatewayContext,
  { keyId, keyName, openedWith, role, tenant, actor }: SignedIn,
): Promise<Response> {
  const cookie = newSecret('mrs_');
  const id = newId();
  const at = new Date(time.now());
  const until = new Date(at.getTime() + sessionMs);
  await control.transaction(async (tx) => {
    await queries.insertSession(tx, { id, hash: hashOf(cookie), keyId, openedWith, role, actor, at, until });
    const body = { name: keyName, role, tenant, with: openedWith, address: remote, session: id };
    await append(tx, keyTopic, [{ type: 'session.opened', subject: keyId, body }], { actor, at });
  });
  await queries.pruneSessions(control, at);
  const headers = { 'set-cookie': formatCookie(cookieName, cookie, sessionMs, secureCookies) };
  return Response.json({ role, tenant, actor }, { status: 201, headers });
}

function formatCookie(name: string, value: string, lifeMs: number, secure: boolean): string {
  return `${name}=${value}; Path=/; HttpOnly; SameSite=Strict; Max-Age=${Math.floor(lifeMs / 1000)}${secure ? '; Secure' : ''}`;
}

/**
 * Makes a link for the key or session with the hash `by`. The secret is in the fragment, which never reaches a server log or
 * a prefetch. The page spends it with a POST.
 */
export async function makeLink(
  { control, time, publicUrl }: Pick<GatewayContext, 'control' | 'time' | 'publicUrl'>,
  by: Buffer | undefined,
): Promise<{ url: string; expiresAt: Date }> {
  const secret = newSecret('mrl_');
  const at = new Date(time.now());
  const expiresAt = new Date(at.getTime() + linkMs);
  if (!(await queries.insertLink(control, { hash: hashOf(secret), by, at, until: expiresAt })))
    throw new MillraceError('unauthenticated', 'this key or session has ended');
  return { url: `${publicUrl()}/signin#${secret}`, expiresAt };
}
