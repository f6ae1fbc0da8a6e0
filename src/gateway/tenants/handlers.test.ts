import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  callEndpoint,
  type Entry,
  insertHost,
  insertLaunch,
  type EndpointAnswer,
  withoutLauncher,
} from '../../../test/harness/tenant-calls.ts';
import { engineOf, inDatabase, makeTestLife, type TestLife } from '../../../test/harness/tenant-life.ts';
import type { Caller } from '../../contract/roles.ts';
import { engine, engineVersion } from '../../engine/engine.ts';
import { newId } from '../../kernel/id.ts';
import { sql } from '../../kernel/sql.ts';
import { insertTenant, setDesired } from '../../tenants/queries.ts';
import { reasons } from '../../control/reasons.ts';
import { tenantEndpointsOfGateway } from './endpoints.ts';

const newer = engineOf('2.0.0', ['create table more ()']);

let life: TestLife;
beforeAll(async () => {
  life = await makeTestLife([engine, newer]);
});
afterAll(() => life.close());

let name: string;
let id: string;
beforeEach(async () => {
  name = life.name();
  id = newId();
  await insertTenant(life.control, { id, name, database: name, ownHost: false, at: new Date() });
});

const ask = (call: string, body?: object, caller?: Caller): Promise<EndpointAnswer> =>
  callEndpoint(life, call, body, caller);
const launched = (entry: Entry): Promise<void> => insertLaunch(life, id, entry);
const host = (): Promise<string> => insertHost(life);

describe('tenants over HTTP', () => {
  it('a tenant is shown with its state, host and version', async () => {
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

  it('a tenant that no launcher has processed is shown as starting, unless it was stopped', async () => {
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

  it('the reason of a tenant that does not run includes that no launcher is active', async () => {
    await launched({ reason: reasons.notInstalled });
    await withoutLauncher(life, async () => {
      expect((await ask(`GET /api/tenants/${name}`)).json).toMatchObject({
        reason: 'not installed; no launcher is active',
      });
      const { json } = await ask(`GET /api/explain/tenant/${name}`);
      expect(json).toMatchObject({
        sentence: `No launcher is active, so nothing changes: Millrace is not installed in the database ${name}.`,
        advice: expect.stringContaining('millrace launcher') as unknown,
        facts: { launcher_active: false },
      });
    });
  });

  it('a tenant that is stopped to be dropped is not shown as stopped by a user', async () => {
    await launched({ reason: reasons.stoppedByUser });
    await life.control.exec(sql`update tenant set desired = 'off', leaving = 'on' where id = ${id}`);
    expect((await ask(`GET /api/tenants/${name}`)).json).toMatchObject({
      reason: 'stopped to be dropped',
      reason_code: 'stopped_by_user',
    });
  });

  it('every call for an unknown tenant answers 404', async () => {
    for (const call of Object.keys(tenantEndpointsOfGateway).filter((key) => key.includes('{name}'))) {
      const body = {
        'PATCH /api/tenants/{name}': { own_host: true },
        'POST /api/tenants/{name}/rename': { name: 'x9' },
      }[call];
      const needsBody = /upgrade|adopt/.test(call) ? {} : body;
      expect([call, (await ask(call.replace('{name}', 'no-such-one').replace('{id}', '1'), needsBody)).status]).toEqual(
        [call, 404],
      );
    }
  });
});

describe('life of a tenant over HTTP', () => {
  it('a tenant can be created, stopped, started, given its own host, upgraded, renamed and dropped', async () => {
    const [mine, then] = [life.name(), life.name()];
    const made = await ask('POST /api/tenants', { name: mine });
    expect([made.status, made.json]).toMatchObject([201, { tenant: { name: mine }, message: { outcome: 'started' } }]);
    expect((await ask('POST /api/tenants', { name: mine })).status).toBe(409);
    const stopping = await ask(`POST /api/tenants/${mine}/stop`);
    expect([stopping.status, stopping.json]).toMatchObject([
      202,
      { tenant: { desired: 'off' }, message: { kind: 'stop', sender: 'key:root' } },
    ]);
    const follow = String(stopping.json['follow']);
    expect((await ask(`GET ${follow}?wait=30`)).json).toMatchObject({ message: { kind: 'stop', outcome: 'stopped' } });
    expect((await ask(`GET ${follow.replace(mine, 'default')}`)).status).toBe(404);
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
    expect(json).toMatchObject({
      items: [{ cause: `rename to ${then}` }, { cause: 'upgrade to 2.0.0' }],
      next: expect.any(String) as unknown,
    });
    expect((await ask(`DELETE /api/tenants/${then}`)).status).toBe(204);
    expect((await ask(`GET /api/tenants/${then}`)).status).toBe(404);
  }, 30_000);

  it('a database can be adopted and released', async () => {
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
  ])('the request %s %j is rejected, and the fault names %s', async (call, body, path) => {
    const { status, json } = await ask(call, body);
    expect([status, json]).toMatchObject([400, { faults: [{ path: expect.stringContaining(path) as unknown }] }]);
  });
});

describe('engines and launchers', () => {
  it('the users of an installed or used engine are listed; another engine is not found', async () => {
    const users = (version: string) => ask(`GET /api/engines/${version}/users`);
    expect(await users('2.0.0')).toMatchObject({ status: 200, json: { tenants: [], unknown: [] } });
    const mine = life.name();
    await ask('POST /api/tenants', { name: mine });
    expect((await users('7.0.0')).status).toBe(404);
    await inDatabase(life, mine, (_, client) => client.query("update millrace.installation set version = '7.0.0'"));
    expect(await users('7.0.0')).toMatchObject({ status: 200, json: { tenants: [mine] } });
  });

  it('engines are listed newest first, with the tenants at each', async () => {
    await launched({ state: 'STARTED', version: '2.0.0' });
    const { json } = await ask('GET /api/engines');
    expect(tenantEndpointsOfGateway['GET /api/engines'].answer.parse(json).items).toMatchObject([
      { version: '2.0.0', running: false, tenants: expect.arrayContaining([name]) as unknown },
      { version: engineVersion, running: true },
    ]);
  });

  it('the SQL endpoint returns the script that installs or upgrades', async () => {
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

  it('the launcher endpoint shows the active launcher, standby launchers, and hosts with their tenants', async () => {
    const hostId = await host();
    await launched({ state: 'STARTED', hostId });
    const [active, other] = ['00000000-0000-7000-8000-000000000000', newId()];
    for (const each of [active, other])
      await life.control.exec(sql`
      insert into launcher (id, machine, pid, version, started_at, beat_at)
      values (${each}, 'box1', 1, '1', clock_timestamp(), clock_timestamp())`);
    const { json } = await ask('GET /api/launcher');
    const answer = tenantEndpointsOfGateway['GET /api/launcher'].answer.parse(json);
    expect(answer).toMatchObject({ active: { id: active }, standing_by: [{ id: other }] });
    expect(answer.hosts.find((each) => each.id === hostId)).toMatchObject({
      machine: 'box7',
      tenants: 1,
      memory: 1_048_576,
    });
  });

  it('a launcher without a heartbeat for five seconds is not listed as standby, even if it had the lease', async () => {
    const [dead, silent] = ['00000000-0000-7000-8000-000000000000', newId()];
    await life.control.exec(sql`delete from launcher`);
    for (const each of [dead, silent])
      await life.control.exec(sql`
        insert into launcher (id, machine, pid, version, started_at, beat_at)
        values (${each}, 'box1', 1, '1', clock_timestamp(), clock_timestamp() - interval '6 seconds')`);
    await withoutLauncher(life, async () => {
      expect((await ask('GET /api/launcher')).json).toMatchObject({ active: null, standing_by: [] });
    });
  });

  it('a host that is known to have ended is listed', async () => {
    const hostId = await host();
    await life.control.exec(sql`update host set beat_at = '-infinity' where id = ${hostId}`);
    const { hosts } = tenantEndpointsOfGateway['GET /api/launcher'].answer.parse((await ask('GET /api/launcher')).json);
    expect(hosts.find((each) => each.id === hostId)).toMatchObject({ beat_at: null });
  });
});
