/** `finish_migration` and our code must agree on which texts are versions, and on their order. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { textWith } from '../../test/harness/expected.ts';
import { type FreshDatabase, makeInstalledTenant } from '../../test/harness/fresh-database.ts';
import { onClient, sql } from '../kernel/sql.ts';
import { compareVersions, isVersion } from '../kernel/text/version.ts';
import { withClient } from '../postgres/databases.ts';

let tenant: FreshDatabase;
beforeAll(async () => {
  tenant = await makeInstalledTenant();
});
afterAll(() => tenant.close());

/** Records the version in a transaction that is rolled back. */
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

const versions = ['1.2.3', '10.20.30', '1.2.3-rc.1', '1.2.3-rc-1.x', '1.2.3+a', '1.2.3-rc.1+a.b-c', '01.2.3', longest];
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

it.each([...versions, ...almost, ...strange])('SQL and TypeScript agree whether %j is a version', async (version) => {
  expect(await isTaken(version)).toBe(isVersion(version));
});

const ordered = [
  ['0.0.1', '0.1.0-alpha', '0.1.0-alpha.1', '0.1.0-alpha.beta', '0.1.0-beta.2', '0.1.0-beta.11', '0.1.0-rc-1', '0.1.0'],
  ['0.1.0+a-b', '0.1.1-0', '0.1.1-9', '0.1.1-10', '0.1.1--', '0.1.1-Z', '0.1.1-a', '0.1.1', '0.2.0', '0.10.0', '1.0.0'],
  ['9.0.0', '10.0.0-1.2', '10.0.0-1.2.0', '10.0.0-1.10', '10.0.0-1.x', '10.0.0', '10.0.0+build.7', 'new', '', '1.2'],
].flat();

it('SQL and TypeScript agree on the order of versions', async () => {
  const pairs = ordered.flatMap((a) => ordered.map((b) => ({ a, b })));
  const older = await withClient(tenant.address, (client) =>
    onClient(client).rows<{ a: string; b: string }>(sql`
      select a, b from jsonb_to_recordset(${JSON.stringify(pairs)}::jsonb) as pair (a text, b text)
       where millrace.version_order(a) collate "C" < millrace.version_order(b) collate "C"`),
  );
  const bothVersions = pairs.filter(({ a, b }) => isVersion(a) && isVersion(b));
  expect(older).toEqual(bothVersions.filter(({ a, b }) => compareVersions(a, b) < 0));
});

/** Makes each change in a migration of its own. Returns the recorded version. */
async function finish(...changes: string[]): Promise<string> {
  return withClient(tenant.address, async (client) => {
    for (const change of changes) await client.query(`begin; select millrace.begin_migration(); ${change}; commit`);
    return (await onClient(client).one<{ version: string }>(sql`select version from millrace.installation`)).version;
  });
}

it('an older version cannot be recorded, unless the present one is invalid or was set by hand', async () => {
  const record = (version: string) => `select millrace.finish_migration('${version}')`;
  const put = (version: string) => `update millrace.installation set version = '${version}'`;
  expect(await finish(record('20.0.0-rc.1'), record('20.0.0'), record('20.0.0'))).toBe('20.0.0');
  await expect(finish(record('20.0.0-rc.1'))).rejects.toMatchObject({
    message: 'the tenant is at 20.0.0; 20.0.0-rc.1 is older, and there is no way back',
    hint: textWith('by mistake'),
  });
  expect(await finish()).toBe('20.0.0');
  expect(await finish(put('nonsense'), record('20.0.0-rc.1'))).toBe('20.0.0-rc.1');
  expect(await finish(put('0.1.0'))).toBe('0.1.0');
});
