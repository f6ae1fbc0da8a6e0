import { afterAll, beforeAll, expect, it } from 'vitest';
import {
  type FreshDatabase,
  freshAddress,
  makeFreshDatabase,
  makeInstalledTenant,
} from '../../test/harness/fresh-database.ts';
import { administer, serverAddress } from '../../test/harness/postgres-server.ts';
import { textWith } from '../../test/harness/expected.ts';
import { until } from '../../test/harness/until.ts';
import { onClient, sql } from '../kernel/sql.ts';
import { type Address, onDatabase } from '../postgres/address.ts';
import { withClient } from '../postgres/databases.ts';
import { locks } from '../postgres/locks.ts';
import { look } from './inspect.ts';

let installed: FreshDatabase;
let bare: FreshDatabase;
let untouched: FreshDatabase;
beforeAll(async () => {
  const made = [makeInstalledTenant('1.2.3'), makeFreshDatabase(), makeFreshDatabase()] as const;
  [installed, bare, untouched] = await Promise.all(made);
});
afterAll(() => Promise.all([installed, bare, untouched].map((database) => database.close())));

const drain = sql`select pg_advisory_xact_lock(${locks.drain[0]}::integer, ${locks.drain[1]}::integer)`;

/** Does the work while a transaction holds `drain`. The transaction ends by commit or rollback when the work calls `finish`. */
async function duringMigration<T>(
  end: 'commit' | 'rollback',
  work: (finish: () => Promise<void>) => Promise<T>,
): Promise<T> {
  return withClient(installed.address, async (client) => {
    await client.query('begin');
    await onClient(client).exec(drain);
    await client.query(`update millrace.installation set version = '2.0.0'`);
    return work(async () => void (await client.query(end)));
  });
}

it('an inspection finds the installed version', async () => {
  expect(await look(installed.address, 100)).toEqual({ kind: 'installed', version: '1.2.3' });
});

it('an inspection finds that Millrace is not installed, or not completely', async () => {
  expect(await look(bare.address, 100)).toEqual({ kind: 'not_installed' });
  await withClient(bare.address, (client) => client.query('create schema millrace'));
  expect(await look(bare.address, 100)).toEqual({ kind: 'not_installed' });
  await withClient(bare.address, (client) => client.query('create table millrace.installation (version text)'));
  expect(await look(bare.address, 100)).toEqual({ kind: 'not_installed' });
});

it('an inspection of a database without Millrace leaves no error in the server’s log', async () => {
  const counts = (): Promise<{ committed: number; failed: number }> =>
    withClient(serverAddress(), (client) =>
      onClient(client).one(sql`
        select xact_commit::integer as committed, xact_rollback::integer as failed
          from pg_stat_database where datname = ${untouched.address.database}`),
    );
  const before = await counts();
  expect(await look(untouched.address, 100)).toEqual({ kind: 'not_installed' });
  const after = await until('it was counted', async () => {
    const now = await counts();
    return now.committed > before.committed + 2 ? now : undefined;
  });
  expect(after.failed).toBe(before.failed);
});

it('an inspection finds that the database does not exist', async () => {
  expect(await look(freshAddress().address, 100)).toEqual({ kind: 'gone' });
});

it('an inspection reports `locked` if a transaction has locked the table without drain', async () => {
  await withClient(installed.address, async (client) => {
    await client.query('begin; lock table millrace.installation in access exclusive mode');
    expect(await look(installed.address, 100)).toEqual({ kind: 'locked' });
    await client.query('rollback');
  });
  expect(await look(installed.address, 100)).toEqual({ kind: 'installed', version: '1.2.3' });
});

it('an inspection reports `migrating` if a transaction holds drain for longer than the inspection may wait', async () => {
  await duringMigration('rollback', async (finish) => {
    expect(await look(installed.address, 100)).toEqual({ kind: 'migrating' });
    await finish();
  });
  expect(await look(installed.address, 100)).toEqual({ kind: 'installed', version: '1.2.3' });
});

it.each([
  ['rollback', '1.2.3'],
  ['commit', '2.0.0'],
] as const)('an inspection that waited for a %s finds version %s', async (end, version) => {
  const looking = await duringMigration(end, async (finish) => {
    const waiting = look(installed.address, 10_000);
    await until('it waits', async () => {
      const rows = await withClient(installed.address, (client) =>
        onClient(client).rows(sql`
          select 1 from pg_stat_activity
           where application_name = 'millrace look' and wait_event = 'advisory' and datname = current_database()`),
      );
      return rows.length > 0 || undefined;
    });
    await finish();
    return { waiting };
  });
  expect(await looking.waiting).toEqual({ kind: 'installed', version });
});

it('an inspection reports why a database cannot be used', async () => {
  const nowhere: Address = onDatabase({ url: 'postgres://nobody@127.0.0.1:1/' }, 'x');
  expect(await look(nowhere, 100)).toMatchObject({ kind: 'unreachable', reason: { cause: 'connection_lost' } });
  await administer(serverAddress(), `alter database ${bare.address.database} allow_connections false`);
  expect(await look(bare.address, 100)).toMatchObject({
    kind: 'unreachable',
    reason: { cause: 'error', data: { text: textWith('not currently accepting') } },
  });
});

it.each([
  ["'latest'", '"latest"'],
  ["repeat('9', 10000000) || '.0.0'", `"${'9'.repeat(100)}"`],
  ['null', 'null'],
  ["''", '""'],
  [`E'1.2.3\\nand more'`, '"1.2.3\\nand more"'],
])('an inspection refuses the invalid version %s', async (recorded, quoted) => {
  const strange = await makeFreshDatabase();
  await administer(
    strange.address,
    `create schema millrace; create table millrace.installation as select ${recorded}::text as version`,
  );
  expect(await look(strange.address, 100)).toEqual({
    kind: 'unreachable',
    reason: {
      code: 'unreachable',
      cause: 'installation_table',
      data: { text: `the recorded version is not valid: ${quoted}` },
    },
  });
  await strange.close();
});

it('an inspection refuses a table of that name that Millrace has not created', async () => {
  const strange = await makeFreshDatabase();
  await administer(strange.address, 'create schema millrace; create table millrace.installation (price integer)');
  expect(await look(strange.address, 100)).toEqual({
    kind: 'unreachable',
    reason: { code: 'unreachable', cause: 'installation_table', data: { text: 'column "version" does not exist' } },
  });
  await strange.close();
});

it('an inspection reads one row, however many there are', async () => {
  const strange = await makeFreshDatabase();
  await administer(
    strange.address,
    `create schema millrace;
     create view millrace.installation as select '1.2.3' as version from (select generate_series(1, 1000000000)) many`,
  );
  expect(await look(strange.address, 100)).toEqual({ kind: 'installed', version: '1.2.3' });
  await strange.close();
});

it('an inspection leaves no connection open', async () => {
  await look(installed.address, 100);
  await until('it is gone', async () => {
    const rows = await withClient(installed.address, (client) =>
      onClient(client).rows(sql`
        select 1 from pg_stat_activity where application_name = 'millrace look' and datname = current_database()`),
    );
    return rows.length === 0 || undefined;
  });
});
