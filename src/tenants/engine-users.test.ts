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

const all = { after: undefined, limit: 1_000 };

const make = async (): Promise<string> => {
  const name = life.name();
  await createTenant(life, { name, actor: 'key:ann' });
  return name;
};

it('the users of an engine are the tenants whose databases record its version, whatever the launcher has seen', async () => {
  const [old, moved, bare] = [await make(), await make(), await make()];
  await inDatabase(life, moved, (_, client) => client.query("update millrace.installation set version = '2.0.0'"));
  await inDatabase(life, bare, (_, client) => client.query('drop schema millrace cascade'));
  expect(await engineUsers(life, '2.0.0', all)).toEqual({ tenants: [moved], unknown: [], next: null });
  expect((await engineUsers(life, engineVersion, all)).tenants).toContain(old);
  const pages = [];
  for (let after: string | undefined; ; ) {
    const page = await engineUsers(life, '2.0.0', { after, limit: 1 });
    pages.push(page);
    if (page.next === null) break;
    after = page.next;
  }
  expect(pages.length).toBeGreaterThanOrEqual(3);
  expect(pages.flatMap(({ tenants }) => tenants)).toEqual([moved]);
  await administer(serverAddress(), `alter database "${moved}" allow_connections false`);
  expect(await engineUsers(life, '2.0.0', all)).toEqual({ tenants: [], unknown: [moved], next: null });
  await administer(serverAddress(), `alter database "${moved}" allow_connections true`);
});
