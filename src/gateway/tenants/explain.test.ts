import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { until } from '../../../test/harness/until.ts';
import { callEndpoint, type EndpointAnswer, type Entry, viewerOf } from '../../../test/harness/tenant-calls.ts';
import { insertHost, insertLaunch } from '../../../test/harness/tenant-calls.ts';
import { engineOf, inDatabase, makeTestLife, type TestLife } from '../../../test/harness/tenant-life.ts';
import type { Caller } from '../../contract/roles.ts';
import { engine } from '../../engine/engine.ts';
import { newId } from '../../kernel/id.ts';
import { sql } from '../../kernel/sql.ts';
import { insertTenant } from '../../tenants/queries.ts';
import { formatReason } from '../../control/format-reason.ts';
import {
  noEngine,
  type PartFact,
  type Reason,
  type ReasonCode,
  reasonCodes,
  reasons,
  storeReason,
} from '../../control/reasons.ts';
import { tenantEndpointsOfGateway } from './endpoints.ts';

/** An engine whose migration waits for a lock of the test. */
const held = engineOf('1.5.0', ['select pg_advisory_xact_lock(4711)']);
const newer = engineOf('2.0.0', ['create table more ()']);

let life: TestLife;
beforeAll(async () => {
  life = await makeTestLife([engine, held, newer]);
});
afterAll(() => life.close());

let name: string;
let id: string;
beforeEach(async () => {
  name = life.name();
  id = newId();
  await insertTenant(life.control, { id, name, database: name, ownHost: false, at: new Date() });
});

const ask = (call: string, body?: object, by?: Caller): Promise<EndpointAnswer> => callEndpoint(life, call, body, by);
const launched = (entry: Entry): Promise<void> => insertLaunch(life, id, entry);
const host = (): Promise<string> => insertHost(life);

const broken: PartFact = { doing: 'firing triggers', since: 'noon', message: 'no such function', hang: null };

describe('explanation of a tenant that does not run', () => {
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
      { reason: noEngine({ detail: 'engine 0.0.9 is not here' }), version: '0.0.9' },
      /at version 0.0.9, and engine 0.0.9 is not here/,
    ],
    not_installed: [{ reason: reasons.notInstalled }, /Millrace is not installed/],
    unreachable: [
      { reason: reasons.error('unreachable', 'no route'), failures: 3, retryAt: at },
      /: no route; tried 3 times in a row; the next try is at 2030/,
    ],
    not_connectable: [{ reason: reasons.isTemplate }, /its database is a template/],
    crashed: [
      { reason: reasons.error('crashed', 'boom'), failures: 1, retryAt: at },
      /has ended once: boom; the next try is at 2030/,
    ],
    failing: [
      { reason: reasons.failing([broken]), failures: 2, retryAt: at },
      /a part of it does not work: firing triggers has failed since noon: no such function; the next try is at 2030/,
    ],
    gone: [{ reason: reasons.gone }, /does not exist/],
  };

  it('the explanation of an interrupted drop says how to complete it and how to revert it', async () => {
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

  it('the explanation names the caller who stopped it, even after a restart, rename or upgrade', async () => {
    await launched({ reason: reasons.stoppedByUser });
    await ask(`POST /api/tenants/${name}/stop`);
    await ask(`POST /api/tenants/${name}/restart`);
    await life.control.exec(sql`update tenant set desired = 'off' where name = ${name}`);
    const { json } = await ask(`GET /api/explain/tenant/${name}`);
    expect(json).toMatchObject({ sentence: expect.stringMatching(/was stopped by \S+ at 20\d\d-/) as unknown });
    await life.control.exec(sql`update tenant set desired = 'on' where name = ${name}`);
  });

  it('the explanation of a missing engine gives the advice once', async () => {
    const missing = { version: '0.0.9', available: ['0.1.0'] };
    await launched({ reason: noEngine({ detail: '', missing }), version: '0.0.9' });
    const { json } = await ask(`GET /api/explain/tenant/${name}`);
    const explained = tenantEndpointsOfGateway['GET /api/explain/tenant/{name}'].answer.parse(json);
    expect(explained.sentence).toMatch(/engine 0.0.9 is not here, only 0.1.0\.$/);
    expect(explained.advice).toMatch(/^`millrace engine add` brings 0.0.9; /);
  });

  it.each(reasonCodes)('the reason %s has one sentence and an advice', async (code) => {
    const [entry, words] = cases[code];
    await launched(entry);
    const { json } = await ask(`GET /api/explain/tenant/${name}`);
    const explained = tenantEndpointsOfGateway['GET /api/explain/tenant/{name}'].answer.parse(json);
    expect(explained).toMatchObject({
      tenant: name,
      reason_code: code,
      sentence: expect.stringMatching(words) as unknown,
    });
    expect(explained.sentence).toMatch(/^[^\n]+\.$/);
    expect(explained.advice === null).toBe(['starting', 'stopping', 'waiting_on_transaction'].includes(code));
  });

  it('root sees the holders of the slots and the position of the tenant', async () => {
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
    const seen = await ask(`GET /api/explain/tenant/${name}`, undefined, viewerOf(id));
    expect(seen.json).toMatchObject({ facts: { holders: null } });
    expect((await ask('GET /api/slots')).json).toMatchObject({
      limit: 1,
      taken: 2,
      items: [
        { kind: 'scheduler', position: null, holder: { id: hostId } },
        { kind: 'scheduler', position: null, holder: { id: hostId } },
        { kind: 'scheduler', tenant: name, position: 1, holder: null },
      ],
    });
  });

  it('an upgrade is advised only to an installed, usable and newer engine', async () => {
    await launched({ reason: noEngine({ detail: 'engine 0.0.9 is not here' }), version: '0.0.9' });
    const advice = async (): Promise<unknown> => (await ask(`GET /api/explain/tenant/${name}`)).json['advice'];
    expect(await advice()).toBe(
      `\`millrace engine add\` brings 0.0.9; \`millrace tenant upgrade ${name}\` goes to 2.0.0, which is here`,
    );
    for (const version of ['2.0.0', '3.0.0']) {
      await life.control.exec(sql`update launch set version = ${version} where tenant_id = ${id}`);
      const add = version === '2.0.0' ? 'millrace engine add --replace --force' : 'millrace engine add';
      expect(await advice()).toBe(`\`${add}\` brings ${version}${version === '2.0.0' ? ' anew' : ''}`);
    }
  });

  it.each([
    ['schema_unfit', /^apply and record what is missing/],
    ['being_restored', /^wait for the end of the restore/],
  ] as const)('no engine is advised if the installed one does not match the schema: %s', async (cause, advice) => {
    const detail = 'its schema does not match engine 2.0.0: 0011_more.sql is missing';
    const data = { engine: '2.0.0', text: '0011_more.sql is missing' };
    await launched({ reason: { code: 'no_engine', cause, data }, version: '2.0.0' });
    const { json } = await ask(`GET /api/explain/tenant/${name}`);
    expect(json).toMatchObject({
      sentence: `${name} is at version 2.0.0, and ${detail}.`,
      advice: expect.stringMatching(advice) as unknown,
    });
  });

  it('the explanation says what a start waits for', async () => {
    const other = 'another scheduler of this tenant is still running (psql, backend 7)';
    const data = { name: 'psql', pid: 7 };
    await launched({ state: 'ALLOCATED', reason: { code: 'starting', cause: 'other_scheduler', data } });
    const { json } = await ask(`GET /api/explain/tenant/${name}`);
    expect(json['sentence']).toBe(`The scheduler of ${name} is starting: ${other}.`);
  });

  it.each<readonly [Reason, string]>([
    [reasons.failing([broken]), 'firing triggers has failed since noon: no such function'],
    [
      { code: 'crashed', cause: 'proving', data: { seconds: 5 } },
      'it has started, and is watched for 5 s before it is called running',
    ],
  ])('the explanation of a retry says what failed or what it waits for: %j', async (reason, cause) => {
    await launched({ state: 'ALLOCATED', reason, failures: 2 });
    const { json } = await ask(`GET /api/explain/tenant/${name}`);
    expect(json['sentence']).toBe(`The scheduler of ${name} is being tried again after 2 failures in a row: ${cause}.`);
  });

  it('the explanation does not blame the server for a changed installation table', async () => {
    const text = 'column "version" does not exist';
    const detail = `its table millrace.installation is not as Millrace makes it: ${text}`;
    const reason = { code: 'unreachable', cause: 'installation_table', data: { text } } as const;
    await launched({ reason, failures: 1, retryAt: at });
    const { json } = await ask(`GET /api/explain/tenant/${name}`);
    expect(json).toMatchObject({
      sentence: expect.stringContaining(`cannot be used: ${detail}; tried once`) as unknown,
      advice: `restore that table in the database ${name}, with the version that its schema is at; \`millrace tenant restart ${name}\` tries at once`,
    });
  });

  it.each<readonly [Reason, RegExp]>([
    [{ code: 'crashed', cause: 'read_only', data: {} }, /^connected to .* alter database .* reset default_tr/],
    [
      { code: 'unreachable', cause: 'missing_right', data: { text: 'permission denied for schema millrace' } },
      /grant usage on schema mill/,
    ],
    [
      { code: 'crashed', cause: 'missing_right', data: { text: 'anna may not write millrace.live' } },
      /grant select, insert, .* on all tab/,
    ],
  ])('the advice is the statement that lets the scheduler write again: %j', async (reason, advice) => {
    await launched({ reason, failures: 1 });
    const { json } = await ask(`GET /api/explain/tenant/${name}`);
    expect(json['advice']).toMatch(advice);
  });

  it('no advice is given if the sentence names the holder of a lock', async () => {
    const holder = { pid: 7, gid: null, application: 'psql', user: null, since: null };
    const stuck: PartFact = { ...broken, message: null, hang: { kind: 'lock', holders: [holder] } };
    const held =
      'firing triggers has made no progress since noon: it waits for a lock held by backend 7 (psql); end it (select pg_terminate_backend(7)), or wait';
    const hostId = await host();
    await launched({ state: 'ALLOCATED', reason: reasons.failing([stuck]) });
    await life.control.exec(sql`update launch set host_id = ${hostId}, ordered = true where tenant_id = ${id}`);
    const { json } = await ask(`GET /api/explain/tenant/${name}`);
    expect(json).toMatchObject({ sentence: `The scheduler of ${name} does not do its work: ${held}.`, advice: null });
  });

  it('dropping the default tenant is never advised', async () => {
    await life.control.exec(sql`update tenant set name = 'default' where id = ${id}`);
    await launched({ reason: reasons.gone });
    const { json } = await ask('GET /api/explain/tenant/default');
    await life.control.exec(sql`update tenant set name = ${name} where id = ${id}`);
    expect(json['advice']).toBe(`restore it as ${name}, or restart Millrace, which makes an empty one`);
  });

  it('advised commands can be copied, whatever the name of the database', async () => {
    name = `My DB/${life.name()}`;
    await life.control.exec(sql`update tenant set name = ${name}, database = ${name} where id = ${id}`);
    await launched({ reason: reasons.notInstalled });
    const { json } = await ask(`GET /api/explain/tenant/${encodeURIComponent(name)}`);
    const proposed = name.toLowerCase().replaceAll(/[ /]/g, '-');
    expect(json['advice']).toBe(`\`millrace tenant adopt ${proposed} --database '${name}'\` installs it`);
  });

  it('the explanation names the migrating backend, and how to end it', async () => {
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

  it('the explanation of an upgrade names its sender and start, advises to wait, and then says how to end it', async () => {
    const mine = life.name();
    const made = (await ask('POST /api/tenants', { name: mine })).json as { tenant?: { id: string } };
    id = made.tenant?.id ?? '';
    await inDatabase(life, mine, async (_, client) => {
      await client.query('select pg_advisory_lock(4711)');
      const upgrading = ask(`POST /api/tenants/${mine}/upgrade`, { to: held.version });
      const { xid, pid } = await until('the upgrade waits', () =>
        life.control.maybeOne<{ xid: string; pid: number }>(sql`
          select xid::text, message.pid from message
            join pg_locks lock on lock.pid = message.pid and lock.objid = 4711 and not lock.granted
           where tenant_id = ${id}`),
      );
      await launched({ state: 'ALLOCATED', reason: reasons.waitingOn(xid), waitOn: xid });
      const { json } = await ask(`GET /api/explain/tenant/${mine}`);
      expect(json).toMatchObject({
        sentence: expect.stringMatching(
          `^${mine} waits: upgrade to 1.5.0, by key:root, is under way since 20.* \\(transaction ${xid}, backend ${pid}\\)\\.$`,
        ) as unknown,
        advice: `wait for its end; if that must not be, select pg_terminate_backend(${pid}) ends it as a rollback`,
        facts: { transaction: xid, blockers: [{ what: 'migration', pid }] },
      });
      await client.query('select pg_advisory_unlock(4711)');
      expect((await upgrading).status).toBe(200);
    });
  });

  it('the explanation names a prepared transaction, and how to end it', async () => {
    const mine = life.name();
    const made = (await ask('POST /api/tenants', { name: mine })).json as { tenant?: { id: string } };
    id = made.tenant?.id ?? '';
    await launched({ state: 'ALLOCATED', reason: reasons.migration });
    const xid = await inDatabase(life, mine, async (db, client) => {
      await client.query('begin; select millrace.begin_migration(); create table more ()');
      // a transaction with savepoints has several numbers
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

  it('the explanation names a transaction that has only locked tables, if the launcher waits for it', async () => {
    const mine = life.name();
    const made = (await ask('POST /api/tenants', { name: mine })).json as { tenant?: { id: string } };
    id = made.tenant?.id ?? '';
    await launched({ state: 'ALLOCATED', reason: reasons.lockedTables });
    const reasonNow = (transaction: string) => {
      const reason = reasons.waitingOn(transaction);
      const sentence = formatReason(reason);
      return life.control.exec(sql`
        update launch set reason = ${sentence}, why = ${storeReason(reason, sentence)}::jsonb where tenant_id = ${id}`);
    };
    const explained = async () => (await ask(`GET /api/explain/tenant/${mine}`)).json;
    const xid = await inDatabase(life, mine, async (db, client) => {
      await client.query("set application_name to 'a tool'; begin; drop schema millrace cascade");
      const own = await db.one<{ xid: string; pid: number }>(sql`
        select pg_current_xact_id()::text as xid, pg_backend_pid() as pid`);
      await reasonNow(own.xid);
      expect(await explained()).toMatchObject({
        sentence: expect.stringContaining(
          `transaction ${own.xid} (which has locked its tables, backend ${own.pid}, a tool, since 20`,
        ) as unknown,
        advice: expect.stringContaining(`pg_terminate_backend(${own.pid})`) as unknown,
        facts: { blockers: [{ what: 'tables', pid: own.pid }] },
      });
      await reasonNow(String(Number(own.xid) + 1));
      expect(await explained()).toMatchObject({ facts: { blockers: [] } });
      await client.query(`prepare transaction '${mine}'`);
      return own.xid;
    });
    await reasonNow(xid);
    const json = await explained();
    await inDatabase(life, mine, (_, client) => client.query(`rollback prepared '${mine}'`));
    expect(json).toMatchObject({
      sentence: expect.stringContaining(
        `transaction ${xid} (which has locked its tables, prepared as ${mine},`,
      ) as unknown,
      advice: `commit prepared '${mine}', or rollback prepared '${mine}'`,
    });
  });

  it('the explanation names a transaction without a number by its virtual id', async () => {
    const mine = life.name();
    const made = (await ask('POST /api/tenants', { name: mine })).json as { tenant?: { id: string } };
    id = made.tenant?.id ?? '';
    await launched({ state: 'ALLOCATED', reason: reasons.migration });
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

  it('only keys of the tenant and root get the explanation', async () => {
    const status = async (caller: Caller) => (await ask(`GET /api/explain/tenant/${name}`, undefined, caller)).status;
    expect(await status(viewerOf(id))).toBe(200);
    expect(await status(viewerOf(newId()))).toBe(403);
    expect(await status({ kind: 'key', role: 'worker', tenantId: null, tenant: null, actor: 'w' })).toBe(403);
    expect((await ask('GET /api/tenants', undefined, viewerOf(id))).status).toBe(403);
  });
});
