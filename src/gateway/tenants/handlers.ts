/** The installation's tenants, slots, engines and launchers over HTTP. What makes and changes them is in `launcher/life`. */
import { actorOf, type Caller } from '../../contract/roles.ts';
import { MillraceError } from '../../errors.ts';
import type { Handlers } from '../../http/endpoint.ts';
import { compareVersions } from '../../kernel/text/version.ts';
import { adoptTenant } from '../../tenants/adopt.ts';
import { createTenant } from '../../tenants/create.ts';
import { dropTenant } from '../../tenants/drop.ts';
import { engineUsers } from '../../tenants/engine-users.ts';
import { engineFor, type Life, type Ordered, outcome } from '../../tenants/life.ts';
import { giveOwnHost, limitSlots, order, slotLimit } from '../../tenants/orders.ts';
import { releaseTenant } from '../../tenants/release.ts';
import { renameTenant } from '../../tenants/rename.ts';
import { migrationScript } from '../../tenants/script.ts';
import { planUpgrade, upgradeTenant } from '../../tenants/upgrade.ts';
import { isMessageTo, type MessageKind, messagesOf } from '../../control/messages.ts';
import { rejectOtherTenant } from '../access/callers.ts';
import type { GatewayContext } from '../installation/context.ts';
import { explainTenant } from './explain.ts';
import { readCircumstances } from './standing.ts';
import type { tenantEndpointsOfGateway } from './endpoints.ts';
import * as queries from './queries.ts';
import { messageView, tenantView } from './views.ts';

type Context = Pick<GatewayContext, 'life'>;

const by = (caller: Caller | undefined): string => (caller === undefined ? '' : actorOf(caller));

export const tenantHandlers: Handlers<typeof tenantEndpointsOfGateway, Context> = {
  'GET /api/tenants': async (_, { life }) => {
    const [rows, circumstances] = await Promise.all([queries.tenantStates(life.control), readCircumstances(life)]);
    return { items: rows.map((row) => tenantView(row, circumstances)), next: null };
  },
  'POST /api/tenants': async ({ body, caller }, { life }) => {
    const { name, database, version, own_host: ownHost } = body;
    return shown(life, await createTenant(life, { name, database, version, ownHost, actor: by(caller) }));
  },
  'GET /api/tenants/{name}': async ({ params }, { life }) => viewOf(life, params),
  'PATCH /api/tenants/{name}': async ({ params, body, caller }, { life }) => {
    await giveOwnHost(life, params.name, { ownHost: body.own_host, actor: by(caller) });
    return viewOf(life, params);
  },
  'DELETE /api/tenants/{name}': async ({ params, caller }, { life }) =>
    dropTenant(life, params.name, { actor: by(caller) }),
  'POST /api/tenants/{name}/start': ordering('start'),
  'POST /api/tenants/{name}/stop': ordering('stop'),
  'POST /api/tenants/{name}/restart': ordering('restart'),
  'POST /api/tenants/{name}/adopt': async ({ params, body, caller }, { life }) => {
    const { database, version, own_host: ownHost } = body;
    const wanted = { name: params.name, database, version, ownHost, actor: by(caller) };
    return shown(life, await adoptTenant(life, wanted));
  },
  'POST /api/tenants/{name}/release': async ({ params, caller }, { life }) =>
    releaseTenant(life, params.name, { actor: by(caller) }),
  'POST /api/tenants/{name}/upgrade': async ({ params, body, caller }, { life }) => {
    const { dry_run: dryRun = false } = body;
    const { to } = body;
    const done = dryRun
      ? await planUpgrade(life, params.name, { to })
      : await upgradeTenant(life, params.name, { to, actor: by(caller) });
    const { from, migrations, sessions, message } = done;
    const tenant = await viewOf(life, { id: done.tenantId });
    const told = message === null ? null : messageView(message);
    return { from, to: done.to, migrations: [...migrations], sessions, dry_run: dryRun, tenant, message: told };
  },
  'POST /api/tenants/{name}/rename': async ({ params, body, caller }, { life }) => {
    await renameTenant(life, params.name, { name: body.name, actor: by(caller) });
    return viewOf(life, body);
  },
  'GET /api/tenants/{name}/messages': async ({ params, query }, { life }) => {
    const { id } = await stateOf(life, params);
    return { items: (await messagesOf(life.control, id, query.limit)).map(messageView), next: null };
  },
  'GET /api/tenants/{name}/messages/{id}': async ({ params: { name, id }, query }, { life }) => {
    const tenant = await stateOf(life, { name });
    if (!(await isMessageTo(life.control, tenant.id, id)))
      throw new MillraceError('not_found', `tenant ${name} has no message ${id}`);
    return shown(life, await outcome(life, tenant.id, id, query.wait * 1_000));
  },
  'GET /api/explain/tenant/{name}': async ({ params, caller }, { life }) => {
    const row = await queries.tenantState(life.control, params);
    rejectOtherTenant(caller, { id: row?.id, name: params.name });
    return explainTenant(life, known(row, params), isRoot(caller));
  },
  'GET /api/slots': async (_, { life }) => {
    const [limit, rows] = await Promise.all([slotLimit(life), queries.slotRows(life.control)]);
    const items = rows.map(({ kind, tenant, holder, reason, since, position }) => {
      return { kind, tenant, holder, reason, since: since.toISOString(), position };
    });
    return { limit, taken: items.filter(({ position }) => position === null).length, items };
  },
  'PUT /api/slots': async ({ body: { limit }, caller }, { life }) => {
    await limitSlots(life, { limit, actor: by(caller) });
    return { limit };
  },
  'GET /api/engines': async (_, { life }) => {
    const [engines, uses] = await Promise.all([life.engines.list(), queries.engineUses(life.control)]);
    const tenants = new Map(uses.map((use) => [use.version, use.tenants]));
    const items = engines.map(({ version, contract, fault, running }) => {
      return { version, contract, fault, running, tenants: tenants.get(version) ?? [] };
    });
    return { items: items.sort((a, b) => compareVersions(b.version, a.version)), next: null };
  },
  'GET /api/engines/{version}/users': async ({ params: { version } }, { life }) => {
    const users = await engineUsers(life, version);
    const isNobodys = users.tenants.length + users.unknown.length === 0;
    if (!isNobodys || (await life.engines.list()).some((engine) => engine.version === version)) return users;
    throw new MillraceError('not_found', `there is no engine ${version}, and no tenant is at it`);
  },
  'GET /api/engines/{version}/sql': async ({ params: { version }, query: { from } }, { life }) => {
    const way = async (to: string, field: string) => {
      await engineFor(life, to, field);
      return { version: to, ...(await life.schemaOf(to)) };
    };
    const to = await way(version, 'path.version');
    return migrationScript({ from: from === undefined ? undefined : await way(from, 'query.from'), to });
  },
  'GET /api/launcher': async (_, { life }) => {
    const [launchers, hosts] = await Promise.all([queries.launcherRows(life.control), queries.hostRows(life.control)]);
    const active = launchers.find((launcher) => launcher.active);
    return {
      active: active ? { ...processOf(active), epoch: active.epoch, started_at: active.startedAt.toISOString() } : null,
      standing_by: launchers.filter((launcher) => !launcher.active).map(processOf),
      hosts: hosts.map(shownHost),
    };
  },
};

function ordering(kind: MessageKind) {
  return async ({ params, caller }: { params: { name: string }; caller: Caller | undefined }, { life }: Context) =>
    acceptedAs(params.name, await shown(life, await order(life, params.name, { kind, actor: by(caller) })));
}

function acceptedAs(name: string, answer: Awaited<ReturnType<typeof shown>>) {
  return { ...answer, follow: `/api/tenants/${encodeURIComponent(name)}/messages/${answer.message.id}` };
}

async function shown(life: Life, { tenantId, message }: Ordered) {
  return { tenant: await viewOf(life, { id: tenantId }), message: messageView(message) };
}

type Which = { readonly name: string } | { readonly id: string };

async function viewOf(life: Life, which: Which) {
  const [row, circumstances] = await Promise.all([stateOf(life, which), readCircumstances(life)]);
  return tenantView(row, circumstances);
}

async function stateOf({ control }: Life, which: Which): Promise<queries.TenantState> {
  return known(await queries.tenantState(control, which), which);
}

function known(row: queries.TenantState | undefined, which: Which): queries.TenantState {
  if (row !== undefined) return row;
  throw new MillraceError('not_found', 'name' in which ? `there is no tenant ${which.name}` : 'the tenant is gone');
}

function isRoot(caller: Caller | undefined): boolean {
  return caller !== undefined && caller.kind !== 'task' && caller.role === 'root';
}

function processOf({ id, machine, pid }: queries.Process): queries.Process {
  return { id, machine, pid };
}

function shownHost(host: queries.HostRow) {
  const { engine, tenants, memory, startedAt, beatAt } = host;
  const times = { started_at: startedAt.toISOString(), beat_at: beatAt?.toISOString() ?? null };
  return { ...processOf(host), engine, tenants, memory, ...times };
}
