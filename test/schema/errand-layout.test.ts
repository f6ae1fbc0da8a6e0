/** Migration 21 changes how errands are held. Those of an existing tenant keep their states, and pending ones their workers. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { engine, engineVersion } from '../../src/engine/engine.ts';
import { errandLimits, errandTimes } from '../../src/errands/contract.ts';
import { postgresErrands } from '../../src/errands/postgres.ts';
import { newId } from '../../src/kernel/id.ts';
import { onClient, onPool, sql } from '../../src/kernel/sql.ts';
import { withClient } from '../../src/postgres/databases.ts';
import type { Migration } from '../../src/postgres/migrate.ts';
import { openPool } from '../../src/postgres/pool/pool.ts';
import { ownSchemaSource } from '../../src/postgres/schema-source.ts';
import { migrateTenant } from '../../src/tenants/install.ts';
import { migrationScript } from '../../src/tenants/script.ts';
import { restoreFormerTenant } from '../harness/former-release.ts';
import type { FreshDatabase } from '../harness/fresh-database.ts';

const layout = 21;
let former: FreshDatabase;
beforeAll(async () => {
  former = await restoreFormerTenant();
});
afterAll(() => former.close());

it('errands of every state pass to the new layout, and a pending one comes back from its worker', async () => {
  const source = await ownSchemaSource('tenant');
  const [silent, beating] = [newId(), newId()];
  const nowMs = Date.now();
  await withClient(former.address, async (client) => {
    const done = await onClient(client).rows<Migration>(
      sql`select number, name, '' as text, checksum from millrace.migration order by 1`,
    );
    const migrations = source.migrations.filter(({ number }) => number < layout);
    const to = { ...source, migrations, version: engineVersion };
    await client.query(migrationScript({ from: { version: '0.1.0', migrations: done }, to }));
    await client.query('set search_path to millrace');
    await client.query(
      `insert into errand (queue, key, state, run_at, worker, lease, taken_at, again, losses)
       values ('main', 'ready', 'r', null, null, 0, null, false, 2),
              ('main', 'later', 's', $3, null, 4, $4, false, 0),
              ('main', 'silent', 'p', null, $1, 7, $4, false, 4),
              ('main', 'pushed', 'p', null, $1, 7, $4, true, 0),
              ('main', 'named', 'p', null, $2, 9, $4, false, 0),
              ('aux', 'aux', 'p', null, $2, 9, null, false, 0),
              ('main', 'set aside', 'x', null, null, 2, $4, false, 5)`,
      [silent, beating, new Date(nowMs + 1_000), new Date(nowMs - 60_000)],
    );
    await client.query('insert into errand_worker (id, beat_at) values ($1, $2)', [beating, new Date(nowMs)]);
  });
  await migrateTenant(former.address, engine);
  const options = { schema: 'millrace', application: 'millrace tests', max: 2, allowPooler: false } as const;
  const pool = openPool({ address: former.address, ...options, onError: () => {} });
  const errands = postgresErrands(onPool(pool));
  expect(await errands.counts('main')).toEqual({ scheduled: 1, ready: 1, pending: 3, poisoned: 1 });
  expect(await errands.counts('aux')).toEqual({ scheduled: 0, ready: 0, pending: 1, poisoned: 0 });
  expect(await errands.scrub('main', nowMs - errandTimes.silentMs, errandLimits.mostLosses)).toBe(2);
  expect((await errands.poisoned('main')).map(({ key }) => key)).toEqual(['set aside', 'silent']);
  await errands.due('main', nowMs + 1_000, 10);
  const taken = await errands.acquire('main', newId(), 10, nowMs);
  expect(taken.map(({ key }) => key)).toEqual(['ready', 'pushed', 'later']);
  await pool.end();
});
