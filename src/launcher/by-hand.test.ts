/** `finish_migration` takes the versions that an engine can have, and no others: two places that must say the same. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type FreshDatabase, makeInstalledTenant } from '../../test/harness/fresh-database.ts';
import { onClient, sql } from '../kernel/sql.ts';
import { isVersion } from '../kernel/version.ts';
import { withClient } from '../postgres/databases.ts';

let tenant: FreshDatabase;
beforeAll(async () => {
  tenant = await makeInstalledTenant();
});
afterAll(() => tenant.close());

/** Recorded, and undone. */
async function isTaken(version: string): Promise<boolean> {
  const done = new Error('done');
  const taking = withClient(tenant.address, (client) =>
    onClient(client).transaction(async (tx) => {
      await tx.exec(sql`select millrace.begin_migration()`);
      await tx.exec(sql`select millrace.finish_migration(${version})`);
      throw done;
    }),
  );
  const error: unknown = await taking.catch((reason: unknown) => reason);
  if (error !== done) expect(error).toMatchObject({ message: `${version} is not a version, such as 1.2.3` });
  return error === done;
}

const longest = `1.2.3-${'a'.repeat(94)}`;

const versions = ['0.1.0', '10.20.30', '1.2.3-rc.1', '1.2.3-rc-1.x', '1.2.3+a', '1.2.3-rc.1+a.b-c', '01.2.3', longest];
const almost = [
  '',
  '1.2',
  '1.2.3.4',
  'v1.2.3',
  '1.2.3-',
  '1.2.3+',
  '1.2.3-rc..1',
  '1.2.3-.rc',
  '1.2.3-rc.',
  '1.2.3+a+b',
];
const strange = ['1.2.3-a_b', '1.2.3\n', ' 1.2.3', '1.2.3/../x', '١.٢.٣', `${longest}a`, `${'9'.repeat(97)}.2.3`];

it.each([...versions, ...almost, ...strange])('%j is a version to both or to neither', async (version) => {
  expect(await isTaken(version)).toBe(isVersion(version));
});
