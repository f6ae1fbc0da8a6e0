import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { engineOf, inDatabase, makeTestLife, type TestLife } from '../../test/harness/tenant-life.ts';
import type { Caller } from '../contract/roles.ts';
import { engine, engineVersion } from '../engine/engine.ts';
import { makeRouter } from '../http/router.ts';
import { newId } from '../kernel/id.ts';
import { sql } from '../kernel/sql.ts';
import { insertTenant, setDesired } from '../launcher/life/queries.ts';
import { type Reason, type ReasonCode, reasonCodes, reasons } from '../launcher/reasons.ts';
import { tenantEndpointsOfGateway } from './tenant-endpoints.ts';
import { tenantHandlers } from './tenants.ts';

const newer = engineOf('2.0.0', ['create table more ()']);
const root: Caller = { kind: 'key', role: 'root', tenant: null, actor: 'key:root' };
const viewerOf = (tenant: string): Caller => ({ kind: 'key', role: 'viewer', tenant, actor: 'key:v' });

let life: TestLife;
beforeAll(async () => {
  life = await makeTestLife([engine, newer]);
});
afterAll(() => life.close());

const route = makeRouter(tenantEndpointsOfGateway, tenantHandlers, (error) => {
  throw error;
});

async function ask(call: string, body?: object, caller: Caller = root) {
  const [method = '', path = ''] = call.split(' ');
  const sent =
    body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } };
  const response = await route(new Request(`http://here${path}`, { method, ...sent }), { life }, caller);
  const text = (await response?.text()) ?? '';
  return {
    status: response?.status,
    text,
    json: text.startsWith('{') ? (JSON.parse(text) as Record<string, never>) : {},
  };
}

let name: string;
let id: string;
beforeEach(async () => {
  name = life.name();
  id = newId();
  await insertTenant(life.control, { id, name, database: name, ownHost: false, at: new Date() });
});

interface Entry {
  readonly state?: string;
  readonly reason?: Reason;
  readonly version?: string;
  readonly failures?: number;
  readonly retryAt?: Date;
  readonly hostId?: string;
  readonly waitOn?: string;
}

/** As the launcher writes it. */
async function launched(entry: Entry): Promise<void> {
  const {
    state = 'DISABLED',
    reason,
    version = null,
    failures = 0,
    retryAt = null,
    hostId = null,
    waitOn = null,
  } = entry;
  await life.control.exec(sql`
    insert into launch (tenant_id, state, code, reason, version, failures, retry_at, host_id, ordered, wait_on, changed_at)
    values (${id}, ${state}, ${reason?.code ?? null}, ${reason?.text ?? null}, ${version}, ${failures}, ${retryAt},
            ${hostId}, ${hostId !== null}, ${waitOn}, clock_timestamp())`);
}

async function host(): Promise<string> {
  const hostId = newId();
  await life.control.exec(sql`
    insert into host (id, machine, pid, engine, memory, started_at, beat_at)
    values (${hostId}, 'box7', 4711, ${engineVersion}, 1048576, clock_timestamp(), clock_timestamp())`);
  return hostId;
}

/** For a while, nobody holds the lease. */
async function withoutLauncher(work: () => Promise<void>): Promise<void> {
  await life.launcher.stop();
  await life.control.exec(sql`update launcher_lease set renewed_at = clock_timestamp() - interval '6 seconds'`);
  try {
    await work();
  } finally {
    await life.launcher.start();
  }
}

describe('a tenant', () => {
  it('is shown with its state, host and version', async () => {
    const hostId = await host();
    await launched({ state: 'STARTED', version: engineVersion, hostId });
    const { json } = await ask(`GET /api/tenants/${name}`);
    expect(tenantEndpointsOfGateway['GET /api/tenants/{name}'].answer.parse(json)).toMatchObject({
      name,
      state: 'STARTED',
      reason: null,
      reason_code: null,
      version: engineVersion,
      desired: 'on',
      host: { id: hostId, machine: 'box7', pid: 4711 },
    });
    const listed = tenantEndpointsOfGateway['GET /api/tenants'].answer.parse((await ask('GET /api/tenants')).json);
    expect(listed.items.find((each) => each.name === name)).toEqual(json);
  });

  it('that no launcher has looked at is about to start, unless somebody has stopped it', async () => {
    expect((await ask(`GET /api/tenants/${name}`)).json).toMatchObject({
      state: 'ENABLED',
      reason: 'starting: no launcher has looked at it yet',
      reason_code: 'starting',
    });
    await setDesired(life.control, id, 'off');
    expect((await ask(`GET /api/tenants/${name}`)).json).toMatchObject({
      state: 'DISABLED',
      reason: 'stopped by user',
    });
  });

  it('that does not run says so when no launcher is active; one that runs does not', async () => {
    await launched({ reason: reasons.notInstalled });
    await withoutLauncher(async () => {
      expect((await ask(`GET /api/tenants/${name}`)).json).toMatchObject({
        reason: 'not installed; no launcher is active',
      });
      const { json } = await ask(`GET /api/explain/tenant/${name}`);
      expect(json).toMatchObject({
        sentence: `No launcher is active, so nothing changes: millrace is not installed in the database ${name}.`,
        advice: expect.stringContaining('millrace launcher') as unknown,
        facts: { launcher_active: false },
      });
      await life.control.exec(
        sql`update launch set state = 'STARTED', code = null, reason = null where tenant_id = ${id}`,
      );
      expect((await ask(`GET /api/tenants/${name}`)).json).toMatchObject({ state: 'STARTED', reason: null });
    });
  });

  it('that is not there is not found by any call', async () => {
    for (const call of Object.keys(tenantEndpointsOfGateway).filter((key) => key.includes('{name}'))) {
      const body = {
        'PATCH /api/tenants/{name}': { own_host: true },
        'POST /api/tenants/{name}/rename': { name: 'x9' },
      }[call];
      const needsBody = /upgrade|adopt/.test(call) ? {} : body;
      expect([call, (await ask(call.replace('{name}', 'no-such-one'), needsBody)).status]).toEqual([call, 404]);
    }
  });
});

describe('the life of a tenant over HTTP', () => {
  it('is create, stop, start, own host, upgrade, rename, messages, drop', async () => {
    const [mine, then] = [life.name(), life.name()];
    const made = await ask('POST /api/tenants', { name: mine });
    expect([made.status, made.json]).toMatchObject([201, { tenant: { name: mine }, message: { outcome: 'started' } }]);
    expect((await ask('POST /api/tenants', { name: mine })).status).toBe(409);
    expect((await ask(`POST /api/tenants/${mine}/stop`)).json).toMatchObject({
      tenant: { desired: 'off' },
      message: { kind: 'stop', outcome: 'stopped', sender: 'key:root' },
    });
    expect((await ask(`POST /api/tenants/${mine}/start`)).json).toMatchObject({ tenant: { desired: 'on' } });
    expect((await ask(`POST /api/tenants/${mine}/restart`, {})).json).toMatchObject({ message: { kind: 'restart' } });
    expect((await ask(`PATCH /api/tenants/${mine}`, { own_host: true })).json).toMatchObject({ own_host: true });
    const plan = await ask(`POST /api/tenants/${mine}/upgrade`, { dry_run: true });
    expect(plan.json).toMatchObject({ from: engineVersion, to: '2.0.0', dry_run: true, sessions: 0, message: null });
    const upgraded = await ask(`POST /api/tenants/${mine}/upgrade`, { to: '2.0.0' });
    expect(upgraded.json).toMatchObject({
      migrations: [newer.all.at(-1)?.name],
      dry_run: false,
      message: { outcome: 'started' },
    });
    expect((await ask(`POST /api/tenants/${mine}/rename`, { name: then })).json).toMatchObject({
      name: then,
      database: then,
    });
    const { json } = await ask(`GET /api/tenants/${then}/messages?limit=2`);
    expect(json).toMatchObject({ items: [{ cause: `rename to ${then}` }, { cause: 'upgrade to 2.0.0' }], next: null });
    expect((await ask(`DELETE /api/tenants/${then}`)).status).toBe(204);
    expect((await ask(`GET /api/tenants/${then}`)).status).toBe(404);
  }, 30_000);

  it('is adopt and release', async () => {
    const mine = life.name();
    await inDatabase(life, 'postgres', (_, client) => client.query(`create database ${mine}`));
    expect((await ask(`POST /api/tenants/${mine}/adopt`, {})).status).toBe(201);
    expect((await ask(`POST /api/tenants/${mine}/release`)).status).toBe(204);
    expect((await ask(`GET /api/tenants/${mine}`)).status).toBe(404);
  });

  it.each([
    ['POST /api/tenants', { name: 'Has Spaces' }, 'body.name'],
    ['POST /api/tenants', { name: 'x', more: 1 }, 'body'],
    ['PUT /api/slots', { limit: -1 }, 'body.limit'],
    ['POST /api/tenants/UP/adopt', {}, 'path.name'],
    ['POST /api/tenants/default/start', { now: true }, 'body'],
    ['POST /api/tenants/default/stop', { force: true }, 'body'],
    ['POST /api/tenants/default/restart', [], 'body'],
  ])('refuses %s %j naming %s', async (call, body, path) => {
    const { status, json } = await ask(call, body);
    expect([status, json]).toMatchObject([400, { faults: [{ path: expect.stringContaining(path) as unknown }] }]);
  });
});

describe('why a tenant does not run', () => {
  const at = new Date('2030-01-01T00:00:00Z');
  const cases: Readonly<Record<ReasonCode, readonly [Entry, RegExp]>> = {
    stopped_by_user: [{ reason: reasons.stoppedByUser }, /was stopped/],
    starting: [{ state: 'ALLOCATED', reason: reasons.starting }, /is starting/],
    stopping: [{ reason: reasons.stopping }, /is ending/],
    waiting_on_transaction: [
      { state: 'ALLOCATED', reason: reasons.waitingOn('7'), waitOn: '7' },
      /waits for the end of transaction 7/,
    ],
    no_slot: [{ state: 'ENABLED', reason: reasons.noSlot(1) }, /waits for a slot/],
    no_engine: [
      { reason: reasons.noEngine('engine 0.0.9 is not here'), version: '0.0.9' },
      /at version 0.0.9, and engine 0.0.9 is not here/,
    ],
    not_installed: [{ reason: reasons.notInstalled }, /Millrace is not installed/],
    unreachable: [
      { reason: reasons.unreachable('no route', at), failures: 3, retryAt: at },
      /: no route; tried 3 times in a row; the next try is at 2030/,
    ],
    not_connectable: [{ reason: reasons.isTemplate }, /its database is a template/],
    crashed: [
      { reason: reasons.crashed('boom', at), failures: 1, retryAt: at },
      /has ended once: boom; the next try is at 2030/,
    ],
    gone: [{ reason: reasons.gone }, /does not exist/],
  };

  it('a drop that was cut short is told of, with how to complete it and how to take it back', async () => {
    await launched({ reason: reasons.stoppedByUser });
    await life.control.exec(sql`update tenant set desired = 'off', leaving = 'on' where name = ${name}`);
    const { json } = await ask(`GET /api/explain/tenant/${name}`);
    expect(json).toMatchObject({
      sentence: expect.stringMatching(/was stopped.* to be dropped, and is still there\.$/) as unknown,
      advice: expect.stringMatching(/tenant drop .* completes that, .*tenant start .* takes it back/) as unknown,
    });
    await ask(`POST /api/tenants/${name}/start`);
    expect(await life.control.rows(sql`select desired, leaving from tenant where name = ${name}`)).toEqual([
      { desired: 'on', leaving: null },
    ]);
  });

  it.each(reasonCodes)('%s is one sentence, with what to do', async (code) => {
    const [entry, words] = cases[code];
    await launched(entry);
    const { json } = await ask(`GET /api/explain/tenant/${name}`);
    const told = tenantEndpointsOfGateway['GET /api/explain/tenant/{name}'].answer.parse(json);
    expect(told).toMatchObject({ tenant: name, reason_code: code, sentence: expect.stringMatching(words) as unknown });
    expect(told.sentence).toMatch(/^[^\n]+\.$/);
    expect(told.advice === null).toBe(['starting', 'stopping', 'waiting_on_transaction'].includes(code));
  });

  it('names who holds the slots and its place in the line, to root', async () => {
    const hostId = await host();
    await launched({ state: 'ENABLED', reason: reasons.noSlot(1) });
    const another = async (): Promise<string> => {
      const other = newId();
      await insertTenant(life.control, { id: other, name: life.name(), database: life.name(), ownHost: false, at });
      return other;
    };
    const slot = (kind: string, tenantId: string, granted: boolean) =>
      life.control.exec(sql`
      insert into slot (id, kind, tenant_id, holder, reason, asked_at, granted_at)
      values (${newId()}, ${kind}, ${tenantId}, ${granted ? hostId : null}, 'to run', ${at}, ${granted ? at : null})`);
    await slot('housekeeping', id, false);
    await slot('scheduler', await another(), true);
    await slot('scheduler', id, false);
    await ask('PUT /api/slots', { limit: 1 });
    const { json } = await ask(`GET /api/explain/tenant/${name}`);
    expect(json).toMatchObject({
      sentence: `${name} waits for a slot as number 1 in the line: 1 of 1 are taken.`,
      advice: expect.stringContaining('--limit 2`') as unknown,
      facts: { position: 1, limit: 1, holders: [{ kind: 'scheduler' }] },
    });
    await slot('scheduler', await another(), true);
    expect((await ask(`GET /api/explain/tenant/${name}`)).json).toMatchObject({
      advice: expect.stringContaining('--limit 3`') as unknown,
    });
    const seen = await ask(`GET /api/explain/tenant/${name}`, undefined, viewerOf(name));
    expect(seen.json).toMatchObject({ facts: { holders: null } });
    expect((await ask('GET /api/slots')).json).toMatchObject({
      limit: 1,
      taken: 2,
      items: [
        { kind: 'scheduler', position: null, holder: { id: hostId } },
        { kind: 'scheduler', position: null, holder: { id: hostId } },
        { kind: 'scheduler', tenant: name, position: 1, holder: null },
        { kind: 'housekeeping', tenant: name, position: 2 },
      ],
    });
  });

  it('proposes an upgrade only to an engine that is here, can be used and is newer', async () => {
    await launched({ reason: reasons.noEngine('engine 0.0.9 is not here'), version: '0.0.9' });
    const advice = async (): Promise<unknown> => (await ask(`GET /api/explain/tenant/${name}`)).json['advice'];
    expect(await advice()).toBe(
      `\`millrace engine add\` brings 0.0.9; \`millrace tenant upgrade ${name}\` goes to 2.0.0, which is here`,
    );
    await life.control.exec(sql`update launch set version = '3.0.0' where tenant_id = ${id}`);
    expect(await advice()).toBe('`millrace engine add` brings 3.0.0');
  });

  it('proposes commands that can be copied, whatever the database is called', async () => {
    name = `My DB/${life.name()}`;
    await life.control.exec(sql`update tenant set name = ${name}, database = ${name} where id = ${id}`);
    await launched({ reason: reasons.notInstalled });
    const { json } = await ask(`GET /api/explain/tenant/${encodeURIComponent(name)}`);
    const proposed = name.toLowerCase().replaceAll(/[ /]/g, '-');
    expect(json['advice']).toBe(`\`millrace tenant adopt ${proposed} --database '${name}'\` installs it`);
  });

  it('names the backend that migrates, and how to end it', async () => {
    const mine = life.name();
    const made = (await ask('POST /api/tenants', { name: mine })).json as { tenant?: { id: string } };
    id = made.tenant?.id ?? '';
    await launched({ state: 'ALLOCATED', reason: reasons.waitingOn('9'), waitOn: '9' });
    await inDatabase(life, mine, async (db, client) => {
      const { pid } = await db.one<{ pid: number }>(sql`select pg_backend_pid() as pid`);
      await client.query("set application_name to 'a tool'; begin; select millrace.begin_migration()");
      const { json } = await ask(`GET /api/explain/tenant/${mine}`);
      expect(json).toMatchObject({
        sentence: expect.stringContaining(`transaction 9 (a migration, backend ${pid}, a tool, since 20`) as unknown,
        advice: expect.stringContaining(`pg_terminate_backend(${pid})`) as unknown,
        facts: { transaction: '9', blockers: [{ what: 'migration', pid }] },
      });
    });
  });

  it('names a prepared transaction, and how to end it', async () => {
    const mine = life.name();
    const made = (await ask('POST /api/tenants', { name: mine })).json as { tenant?: { id: string } };
    id = made.tenant?.id ?? '';
    await launched({ state: 'ALLOCATED', reason: reasons.waitingOn('of a migration') });
    const xid = await inDatabase(life, mine, async (db, client) => {
      await client.query('begin; select millrace.begin_migration(); create table more ()');
      // one that has savepoints has several numbers
      await client.query('savepoint s; create table and_more ()');
      const { own } = await db.one<{ own: string }>(sql`select pg_current_xact_id()::xid::text as own`);
      await client.query(`prepare transaction '${mine}''s'`);
      return own;
    });
    const { json } = await ask(`GET /api/explain/tenant/${mine}`);
    await inDatabase(life, mine, (_, client) => client.query(`rollback prepared '${mine}''s'`));
    expect(json).toMatchObject({
      sentence: expect.stringContaining(`transaction ${xid} (a migration, prepared as ${mine}'s, since 20`) as unknown,
      advice: `commit prepared '${mine}''s', or rollback prepared '${mine}''s'`,
      facts: { transaction: xid, blockers: [{ what: 'migration', pid: null, gid: `${mine}'s` }] },
    });
  });

  it('names a transaction that has no number yet by what the server calls it', async () => {
    const mine = life.name();
    const made = (await ask('POST /api/tenants', { name: mine })).json as { tenant?: { id: string } };
    id = made.tenant?.id ?? '';
    await launched({ state: 'ALLOCATED', reason: reasons.waitingOn('of a migration') });
    await inDatabase(life, mine, async (db, client) => {
      await client.query('begin; select millrace.begin_migration()');
      const { virtual } = await db.one<{ virtual: string }>(sql`
        select virtualtransaction as virtual from pg_locks where pid = pg_backend_pid() limit 1`);
      const { json } = await ask(`GET /api/explain/tenant/${mine}`);
      expect(json).toMatchObject({
        sentence: expect.stringContaining(
          `waits for the end of transaction ${virtual} (a migration, backend `,
        ) as unknown,
        facts: { transaction: virtual },
      });
    });
  });

  it('is told to keys of the tenant and to root, and to nobody else', async () => {
    const status = async (caller: Caller) => (await ask(`GET /api/explain/tenant/${name}`, undefined, caller)).status;
    expect(await status(viewerOf(name))).toBe(200);
    expect(await status(viewerOf('default'))).toBe(403);
    expect(await status({ kind: 'key', role: 'worker', tenant: null, actor: 'w' })).toBe(403);
    expect((await ask('GET /api/tenants', undefined, viewerOf(name))).status).toBe(403);
  });
});

describe('engines and launchers', () => {
  it('lists engines, the newest first, with the tenants at each', async () => {
    await launched({ state: 'STARTED', version: '2.0.0' });
    const { json } = await ask('GET /api/engines');
    expect(tenantEndpointsOfGateway['GET /api/engines'].answer.parse(json).items).toMatchObject([
      { version: '2.0.0', running: false, tenants: expect.arrayContaining([name]) as unknown },
      { version: engineVersion, running: true },
    ]);
  });

  it('prints the script that installs or upgrades', async () => {
    const install = await ask(`GET /api/engines/${engineVersion}/sql`);
    expect(install.text).toMatch(/^-- Millrace: install .*[^]*begin;[^]*create schema millrace;[^]*commit;\n$/);
    const upgrade = await ask(`GET /api/engines/2.0.0/sql?from=${engineVersion}`);
    expect(upgrade.text).toContain('create table more ()');
    expect(upgrade.text).not.toContain('create schema');
    expect((await ask('GET /api/engines/7.0.0/sql')).json).toMatchObject({ faults: [{ path: 'path.version' }] });
    expect((await ask('GET /api/engines/2.0.0/sql?from=7.0.0')).json).toMatchObject({
      faults: [{ path: 'query.from' }],
    });
  });

  it('shows the active launcher, those that stand by, and hosts with what they run', async () => {
    const hostId = await host();
    await launched({ state: 'STARTED', hostId });
    const [active, other] = ['00000000-0000-7000-8000-000000000000', newId()];
    for (const each of [active, other])
      await life.control.exec(sql`
      insert into launcher (id, machine, pid, version, started_at, beat_at)
      values (${each}, 'box1', 1, '1', clock_timestamp(), clock_timestamp())`);
    const { json } = await ask('GET /api/launcher');
    const told = tenantEndpointsOfGateway['GET /api/launcher'].answer.parse(json);
    expect(told).toMatchObject({ active: { id: active }, standing_by: [{ id: other }] });
    expect(told.hosts.find((each) => each.id === hostId)).toMatchObject({
      machine: 'box7',
      tenants: 1,
      memory: 1_048_576,
    });
  });
});
