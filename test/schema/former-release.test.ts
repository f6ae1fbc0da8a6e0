/** Upgrades of a tenant of release 0.1.0: by the engine, by the script and by hand. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { engine, engineVersion } from '../../src/engine/engine.ts';
import { onClient, onPool, sql } from '../../src/kernel/sql.ts';
import { migrateTenant } from '../../src/tenants/install.ts';
import { migrationScript } from '../../src/tenants/script.ts';
import { withClient } from '../../src/postgres/databases.ts';
import type { Migration } from '../../src/postgres/migrate.ts';
import { openPool } from '../../src/postgres/pool/pool.ts';
import { ownSchemaSource } from '../../src/postgres/schema-source.ts';
import { makeContext } from '../harness/engine-context.ts';
import { digestTables, functionDefinitions, restoreFormerTenant } from '../harness/former-release.ts';
import { type FreshDatabase, makeInstalledTenant } from '../harness/fresh-database.ts';
import { HandTime } from '../harness/hand-time.ts';
import { dumpSchema } from '../harness/schema-dump.ts';
import { until } from '../harness/until.ts';

const hour = 3_600_000;
const source = await ownSchemaSource('tenant');

let former: FreshDatabase;
beforeEach(async () => {
  former = await restoreFormerTenant();
});
afterEach(() => former.close());

const readMigrations = (): Promise<Migration[]> =>
  withClient(former.address, (client) =>
    onClient(client).rows<Migration>(sql`select number, name, '' as text, checksum from millrace.migration order by 1`),
  );

async function upgradeByScript(): Promise<void> {
  const from = { version: '0.1.0', migrations: await readMigrations() };
  const script = migrationScript({ from, to: { ...source, version: engineVersion } });
  await withClient(former.address, (client) => client.query(script));
}

/** Follows docs/operations.md: each pending file and its record, then the functions, then the version. */
async function upgradeByHand(): Promise<void> {
  const pending = source.migrations.slice((await readMigrations()).length);
  const steps = pending.map(
    ({ number, name, checksum, text }) => `
      set local search_path to millrace;
      ${text};
      select millrace.record_migration(${number}, '${name}', '${checksum}');`,
  );
  await withClient(former.address, (client) =>
    client.query(`
      begin;
      select millrace.begin_migration();
      ${steps.join('\n')}
      ${source.functions?.text};
      select millrace.finish_migration('${engineVersion}');
      commit`),
  );
}

it.each([
  ['the engine', () => migrateTenant(former.address, engine)],
  ['the script', upgradeByScript],
  ['hand', upgradeByHand],
])('a tenant of 0.1.0 that is upgraded by %s has the schema of a new tenant, and all its rows', async (_, upgrade) => {
  const fresh = await makeInstalledTenant();
  const before = await withClient(former.address, digestTables);
  expect(before.get('live')).toMatch(/^32 /);
  expect(await withClient(former.address, (client) => engine.pending(client))).toEqual([
    ...source.migrations.slice(10).map(({ name }) => name),
    'functions',
  ]);
  await upgrade();
  const read = async ({ address }: FreshDatabase) =>
    withClient(address, async (client) => ({
      pending: await engine.pending(client),
      schema: await dumpSchema(onClient(client), 'millrace'),
      functions: await functionDefinitions(client),
      installation: await onClient(client).rows(sql`
        select version, functions_checksum, functions_declared from millrace.installation`),
    }));
  expect(await read(former)).toEqual(await read(fresh));
  const after = await withClient(former.address, digestTables);
  // the migrations of the bus and of flows add reserved topics
  expect(after.get('topic')).toMatch(/^7 /);
  const isKept = ([table]: [string, unknown]): boolean => before.has(table) && table !== 'topic';
  expect(new Map([...after].filter(isKept))).toEqual(new Map([...before].filter(isKept)));
  await fresh.close();
});

it('runs of 0.1.0 that are running, queued or waiting for a retry finish after the upgrade', async () => {
  await migrateTenant(former.address, engine);
  const pool = openPool({
    address: former.address,
    schema: 'millrace',
    application: 'millrace tests',
    max: 5,
    allowPooler: false,
    onError: () => {},
  });
  const db = onPool(pool);
  const { at } = await db.one<{ at: Date }>(sql`select max(at) as at from event`);
  const time = new HandTime(at.getTime() + 1_000);
  const ctx = makeContext({ address: former.address, pool, time });
  await ctx.hub.service.start();
  const report = async (runs: readonly { run: string; lease: number }[]): Promise<number> => {
    const rest = { tenant: ctx.tenant.id, reason: null, exit_code: 0, started_at: null };
    const reports = runs.map(({ run, lease }) => ({ ...rest, run, lease, state: 'success' as const }));
    return (await engine.runs.report(ctx, reports)).applied;
  };
  const before = await db.rows<{ id: string }>(sql`select id from live`);
  const retries = await db.rows<{ run_id: string }>(sql`select run_id from retry`);
  // their worker reports across the upgrade
  const held = await db.rows<{ run: string; lease: number }>(sql`
    select id as run, lease from live where worker_id is not null`);
  expect([held.length, retries.length]).toEqual([2, 1]);
  expect(await report(held)).toBe(2);

  const scheduler = engine.scheduler(ctx);
  await scheduler.start();
  time.advance(2 * hour);
  const worker = '01900000-0000-7000-8000-000000000001';
  await until('every run is finished', async () => {
    // sweeps and backfills run every few seconds
    time.advance(1_000);
    const lanes = await db.rows<{ lane: string }>(sql`select distinct lane from live`);
    const poll = { worker, incarnation: 1, free: 100, lanes: lanes.map(({ lane }) => lane) };
    const [claimed = []] = await engine.runs.claim(ctx, [poll]);
    await report(claimed);
    const { left } = await db.one<{ left: number }>(sql`
      select (select count(*) from live where id = any (${before.map(({ id }) => id)}::uuid[]))
           + (select count(*) from retry) + (select count(*) from backfill where ended_at is null) as left`);
    return left === 0 || undefined;
  });
  await scheduler.stop();

  const { finished } = await db.one<{ finished: number }>(sql`
    select count(*) as finished from run where id = any (${before.map(({ id }) => id)}::uuid[]) and state = 'success'`);
  expect(finished).toBe(before.length);
  const again = await db.rows(sql`
    select attempt, state from run where cause = any (${retries.map(({ run_id }) => run_id)}::uuid[])`);
  expect(again).toEqual([{ attempt: 2, state: 'success' }]);
  expect(await db.rows(sql`select name, state from backfill order by name`)).toEqual([
    { name: 'done', state: 'done' },
    { name: 'half done', state: 'done' },
  ]);
  expect(ctx.faults).toEqual([]);
  await ctx.hub.service.stop();
  await pool.end();
});
