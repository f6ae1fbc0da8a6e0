/** Handlers for the installation's tenants, slots, engines and launchers. The operations themselves are in `tenants/`. */
import { actorOf, type Caller } from '../../contract/roles.ts';
import { MillraceError } from '../../errors.ts';
import type { Handlers } from '../../http/endpoint.ts';
import { cutPage } from '../../http/page.ts';
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
import { maxNamedTenants, maxTrialMs, slotCursor, type tenantEndpointsOfGateway } from './endpoints.ts';
import * as queries from './queries.ts';
import { renderMessage, renderTenant } from './views.ts';

type Context = Pick<GatewayContext, 'life'>;

const by = (caller: Caller | undefined): string => (caller === undefined ? '' : actorOf(caller));

export const tenantHandlers: Handlers<typeof tenantEndpointsOfGateway, Context> = {
  'GET /api/tenants': async ({ query: { limit, cursor } }, { life }) => {
    const [rows, circumstances] = await Promise.all([
      queries.tenantStates(life.control, { after: cursor, limit: limit + 1 }),
      readCircumstances(life),
    ]);
    return cutPage(rows, { limit, render: (row) => renderTenant(row, circumstances), cursorOf: ({ name }) => name });
  },
  'POST /api/tenants': async ({ body, caller }, { life }) => {
    const { name, database, version, own_host: ownHost } = body;
    return renderOrdered(life, await createTenant(life, { name, database, version, ownHost, actor: by(caller) }));
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
    return renderOrdered(life, await adoptTenant(life, wanted));
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
    const rendered = message === null ? null : renderMessage(message);
    return { from, to: done.to, migrations: [...migrations], sessions, dry_run: dryRun, tenant, message: rendered };
  },
  'POST /api/tenants/{name}/rename': async ({ params, body, caller }, { life }) => {
    await renameTenant(life, params.name, { name: body.name, actor: by(caller) });
    return viewOf(life, body);
  },
  'GET /api/tenants/{name}/messages': async ({ params, query }, { life }) => {
    const { id } = await stateOf(life, params);
    const { limit, cursor } = query;
    const rows = await messagesOf(life.control, id, { before: cursor, limit: limit + 1 });
    return cutPage(rows, { limit, render: renderMessage, cursorOf: (message) => String(message.id) });
  },
  'GET /api/tenants/{name}/messages/{id}': async ({ params: { name, id }, query }, { life }) => {
    const tenant = await stateOf(life, { name });
    if (!(await isMessageTo(life.control, tenant.id, id)))
      throw new MillraceError('not_found', `tenant ${name} has no message ${id}`);
    return renderOrdered(life, await outcome(life, tenant.id, id, query.wait * 1_000));
  },
  'GET /api/explain/tenant/{name}': async ({ params, caller }, { life }) => {
    const row = await queries.tenantState(life.control, params);
    rejectOtherTenant(caller, { id: row?.id, name: params.name });
    return explainTenant(life, known(row, params), isRoot(caller));
  },
  'GET /api/slots': async ({ query }, { life }) => {
    const [limit, { taken, waiting }, rows] = await Promise.all([
      slotLimit(life),
      queries.slotCounts(life.control),
      queries.slotRows(life.control, { after: placeOf(query.cursor), limit: query.limit + 1 }),
    ]);
    const page = cutPage(rows, { limit: query.limit, render: renderSlot, cursorOf: cursorOfSlot });
    return { limit, taken, waiting, ...page };
  },
  'PUT /api/slots': async ({ body: { limit }, caller }, { life }) => {
    await limitSlots(life, { limit, actor: by(caller) });
    return { limit };
  },
  'GET /api/engines': async (_, { life }) => {
    const [engines, uses] = await Promise.all([
      life.engines.listTried(maxTrialMs),
      queries.engineUses(life.control, maxNamedTenants),
    ]);
    const usesOf = new Map(uses.map((use) => [use.version, use]));
    const items = engines.map(({ version, contract, fault, running, loads }) => {
      const { tenants = [], count = 0 } = usesOf.get(version) ?? {};
      return { version, contract, fault, loads, running, tenants, tenant_count: count };
    });
    return { items: items.sort((a, b) => compareVersions(b.version, a.version)), next: null };
  },
  'GET /api/engines/{version}/users': async ({ params: { version }, query: { cursor, limit } }, { life }) => {
    const users = await engineUsers(life, version, { after: cursor, limit });
    const isUnused = users.tenants.length + users.unknown.length === 0 && users.next === null && cursor === undefined;
    if (!isUnused || (await life.engines.list()).some((engine) => engine.version === version)) return users;
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
  'GET /api/launcher': async ({ query: { cursor, limit } }, { life }) => {
    const [launchers, rows] = await Promise.all([
      queries.launcherRows(life.control, maxLaunchers),
      queries.hostRows(life.control, { after: cursor, limit: limit + 1 }),
    ]);
    const { items: hosts, next } = cutPage(rows, { limit, render: renderHost, cursorOf: ({ id }) => id });
    const active = launchers.find((launcher) => launcher.active);
    return {
      active: active ? { ...processOf(active), epoch: active.epoch, started_at: active.startedAt.toISOString() } : null,
      standing_by: launchers.filter((launcher) => !launcher.active).map(processOf),
      hosts,
      next,
    };
  },
};

/** The active launcher and up to 100 standby launchers. */
const maxLaunchers = 101;

function renderSlot({ kind, tenant, holder, reason, since, position }: queries.SlotRow) {
  return { kind, tenant, holder, reason, since: since.toISOString(), position };
}

function cursorOfSlot({ position, sinceMicros, id }: queries.SlotRow): string {
  return `${position === null ? 0 : 1}.${sinceMicros}.${id}`;
}

function placeOf(cursor: string | undefined): queries.SlotPlace | undefined {
  const { waits, since = '0', id = '' } = slotCursor.exec(cursor ?? '')?.groups ?? {};
  return cursor === undefined ? undefined : { waits: waits === '1', sinceMicros: since, id };
}

function ordering(kind: MessageKind) {
  return async ({ params, caller }: { params: { name: string }; caller: Caller | undefined }, { life }: Context) =>
    acceptedAs(params.name, await renderOrdered(life, await order(life, params.name, { kind, actor: by(caller) })));
}

function acceptedAs(name: string, answer: Awaited<ReturnType<typeof renderOrdered>>) {
  return { ...answer, follow: `/api/tenants/${encodeURIComponent(name)}/messages/${answer.message.id}` };
}

async function renderOrdered(life: Life, { tenantId, message }: Ordered) {
  return { tenant: await viewOf(life, { id: tenantId }), message: renderMessage(message) };
}

type Which = { readonly name: string } | { readonly id: string };

async function viewOf(life: Life, which: Which) {
  const [row, circumstances] = await Promise.all([stateOf(life, which), readCircumstances(life)]);
  return renderTenant(row, circumstances);
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

function renderHost(host: queries.HostRow) {
  const { engine, tenants, memory, startedAt, beatAt } = host;
  const times = { started_at: startedAt.toISOString(), beat_at: beatAt?.toISOString() ?? null };
  return { ...processOf(host), engine, tenants, memory, ...times };
}
