import { afterAll, beforeAll, expect, it } from 'vitest';
import { administer, serverAddress } from '../../test/harness/postgres-server.ts';
import { engineOf, inDatabase, makeTestLife, type TestLife } from '../../test/harness/tenant-life.ts';
import { engine, engineVersion } from '../engine/engine.ts';
import { createTenant } from './create.ts';
import { engineUsers } from './engine-users.ts';

let life: TestLife;
beforeAll(async () => {
  life = await makeTestLife([engine, engineOf('2.0.0', ['create table more (a integer)'])]);
});
afterAll(() => life.close());

const make = async (): Promise<string> => {
  const name = life.name();
  await createTenant(life, { name, actor: 'key:ann' });
  return name;
};

it('an engine is used by those whose databases say so, whatever the launcher has seen', async () => {
  const [old, moved, bare] = [await make(), await make(), await make()];
  await inDatabase(life, moved, (_, client) => client.query("update millrace.installation set version = '2.0.0'"));
  await inDatabase(life, bare, (_, client) => client.query('drop schema millrace cascade'));
  expect(await engineUsers(life, '2.0.0')).toEqual({ tenants: [moved], unknown: [] });
  expect((await engineUsers(life, engineVersion)).tenants).toContain(old);
  await administer(serverAddress(), `alter database "${moved}" allow_connections false`);
  expect(await engineUsers(life, '2.0.0')).toEqual({ tenants: [], unknown: [moved] });
  await administer(serverAddress(), `alter database "${moved}" allow_connections true`);
});
