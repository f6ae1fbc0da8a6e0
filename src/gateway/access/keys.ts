/** Keys. Creating or revoking one appends an event to the control database. */
import { everyone } from '../../contract/channels.ts';
import { defaultTenant } from '../../contract/tenants.ts';
import { actorOf, type Role } from '../../contract/roles.ts';
import { MillraceError } from '../../errors.ts';
import { append, keyTopic } from '../../events/append.ts';
import type { Handlers } from '../../http/endpoint.ts';
import { cutPage } from '../../http/page.ts';
import { newId } from '../../kernel/id.ts';
import { newSecret } from '../../kernel/text/secret-text.ts';
import type { Db } from '../../kernel/sql.ts';
import { findTenant } from '../../control/queries.ts';
import { hashOf } from './callers.ts';
import type { GatewayContext } from '../installation/context.ts';
import * as queries from '../installation/queries.ts';
import type { gatewayEndpoints } from '../installation/endpoints.ts';

type Keys = Extract<keyof typeof gatewayEndpoints, `${string} /api/keys${string}` | 'GET /api/me'>;

/** How long the former secret of a rotated key is accepted. */
const formerSecretMs = 24 * 3_600_000;

/** Roles that serve the whole installation. */
const rolesWithoutTenant = new Set<Role>(['root', 'conductor']);

export const accessHandlers: Handlers<Pick<typeof gatewayEndpoints, Keys>, GatewayContext> = {
  'POST /api/keys': async ({ body, caller }, context) => {
    const tenant = body.tenant ?? chooseDefaultTenant(body.role);
    if (rolesWithoutTenant.has(body.role) && body.tenant !== undefined) {
      throw new MillraceError('bad_request', `a ${body.role} key serves the whole installation: leave tenant out`, {
        faults: [{ path: 'body.tenant', message: 'not for this role' }],
      });
    }
    const actor = caller?.kind === 'task' ? 'task' : (caller?.actor ?? '');
    return createKey(context, { name: body.name, role: body.role, tenant, actor });
  },
  'GET /api/keys': async ({ query: { limit, cursor } }, { control, time }) => {
    const rows = await queries.listKeys(control, { after: cursor, limit: limit + 1, at: new Date(time.now()) });
    const render = (row: (typeof rows)[number]) => ({
      ...row,
      created_at: row.created_at.toISOString(),
      expires_at: row.expires_at?.toISOString() ?? null,
    });
    return cutPage(rows, { limit, render, cursorOf: ({ id }) => id });
  },
  'POST /api/keys/{id}/rotate': async ({ params, caller }, { control, time, hub, callers }) => {
    const key = newSecret('mrk_');
    const id = newId();
    const at = new Date(time.now());
    const actor = caller === undefined ? '' : actorOf(caller);
    const expiresAt = new Date(at.getTime() + formerSecretMs);
    const rotated = await control.transaction(async (tx) => {
      const row = await queries.rotateKey(tx, params.id, { id, hash: hashOf(key), at, by: actor, expiresAt });
      if (row === undefined) throw await explainNotRotated(tx, params.id);
      await append(tx, keyTopic, [{ type: 'key.rotated', subject: id, body: { ...row, former: params.id } }], {
        actor,
        at,
      });
      return row;
    });
    callers.forget();
    hub.send('revoked', everyone);
    return { id, ...rotated, key, former_expires_at: expiresAt.toISOString() };
  },
  'DELETE /api/keys/{id}': async ({ params, caller }, { control, time, hub, callers }) => {
    const at = new Date(time.now());
    const actor = caller?.kind === 'task' ? 'task' : (caller?.actor ?? '');
    await control.transaction(async (tx) => {
      const row = await queries.revokeKey(tx, params.id, at);
      if (row === undefined) throw await explainNotRevoked(tx, params.id);
      await append(tx, keyTopic, [{ type: 'key.revoked', subject: params.id, body: row }], { actor, at });
    });
    callers.forget();
    hub.send('revoked', everyone);
  },
  'GET /api/me': async ({ caller }, { loader }) => {
    if (caller === undefined) throw new MillraceError('unauthenticated', 'not signed in; send a key, or sign in');
    if (caller.kind !== 'task') return { role: caller.role, tenant: caller.tenant, actor: caller.actor };
    const { name } = await loader.byId(caller.tenantId);
    return { role: 'task' as const, tenant: name, actor: `run:${caller.run}` };
  },
};

async function explainNotRotated(tx: Db, id: string): Promise<MillraceError> {
  if (await queries.isWorkerKey(tx, id))
    return new MillraceError(
      'conflict',
      'a worker is known by its key: create another key, and restart the worker with it',
    );
  return explainNotRevoked(tx, id);
}

async function explainNotRevoked(tx: Db, id: string): Promise<MillraceError> {
  if (!(await queries.isInstallationKey(tx, id))) return new MillraceError('not_found', `there is no key ${id}`);
  const detail =
    "this is the installation's own root key, which every start enforces again. To replace it, set MILLRACE_ROOT_KEY to another key, or remove the file root-key from the home, and restart";
  return new MillraceError('conflict', detail);
}

/** A worker key serves all tenants unless it names one. */
function chooseDefaultTenant(role: Role): string | null {
  return rolesWithoutTenant.has(role) || role === 'worker' ? null : defaultTenant;
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
