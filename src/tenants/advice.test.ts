import { describe, expect, it } from 'vitest';
import { administer, serverAddress } from '../../test/harness/postgres-server.ts';
import { inDatabase, makeTestLife } from '../../test/harness/tenant-life.ts';
import { adoptTenant } from './adopt.ts';
import { adoptCommand, howToLetIn, isTenantName } from './advice.ts';
import { dropTenant } from './drop.ts';

describe('adopt command', () => {
  it.each([
    ['shop', 'shop', 'millrace tenant adopt shop'],
    ['shop', 'shop_prod', 'millrace tenant adopt shop --database shop_prod'],
    ['My DB/x', 'My DB/x', "millrace tenant adopt my-db-x --database 'My DB/x'"],
    ["_it's_", "_it's_", String.raw`millrace tenant adopt it-s --database '_it'\''s_'`],
    ['日本', '日本', "millrace tenant adopt tenant --database '日本'"],
    [`a${'.'.repeat(70)}b`, 'x', 'millrace tenant adopt a-b --database x'],
    [`${'a'.repeat(62)}-b`, 'x', `millrace tenant adopt ${'a'.repeat(62)} --database x`],
  ])('the command that adopts tenant %j in the database %j can be copied', (name, database, command) => {
    expect(adoptCommand(name, database)).toBe(command);
  });
});

it.each([
  ['shop', true],
  ['a', true],
  ['a_b-1', true],
  ['a'.repeat(63), true],
  ['a'.repeat(64), false],
  ['', false],
  ['Shop', false],
  ['-a', false],
  ['a_', false],
  ['a b', false],
])('%j is allowed as the name of a tenant: %s', (name, can) => expect(isTenantName(name)).toBe(can));

it('the only advice for a database whose drop was interrupted is to drop it again', async () => {
  const life = await makeTestLife();
  const name = life.name();
  await administer(serverAddress(), `create database ${name}`);
  const advice = (tenant: string) => howToLetIn(life.control, { name: tenant, database: name });
  expect(await advice(name)).toBe(`alter database "${name}" with is_template false allow_connections true`);
  await adoptTenant(life, { name, actor: 'ann' });
  await inDatabase(life, 'postgres', (_, client) =>
    client.query(`update pg_database set datconnlimit = -2 where datname = '${name}'`),
  );
  expect(await advice(name)).toMatch(new RegExp(`: \`millrace tenant drop ${name}\`$`));
  expect(await advice('default')).toContain(`: drop database "${name}", then restore it, or restart Millrace`);
  await expect(adoptTenant(life, { name, actor: 'ann' })).rejects.toThrow('accepts no connections');
  await dropTenant(life, name, { actor: 'ann' });
  await life.close();
});
