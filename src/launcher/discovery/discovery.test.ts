import { describe, expect, it } from 'vitest';
import { type Database, discover, type DiscoveryRules, isNothing, type KnownTenant, presences } from './discovery.ts';

const database = (oid: number, name: string, more: Partial<Database> = {}): Database => ({
  oid,
  name,
  template: false,
  connectable: true,
  ...more,
});
const tenant = (name: string, databaseOid: number | null, more: Partial<KnownTenant> = {}): KnownTenant => ({
  id: `id of ${name}`,
  name,
  database: name,
  databaseOid,
  discovered: false,
  elsewhere: false,
  ...more,
});
const all: DiscoveryRules = { discover: 'all', controlDatabase: 'control' };
const registered: DiscoveryRules = { ...all, discover: 'registered' };

describe('discovery', () => {
  it('discovery finds new databases, except templates, closed ones, and those reserved by PostgreSQL or us', () => {
    const databases = [
      database(1, 'control'),
      database(2, 'postgres'),
      database(3, 'template1', { template: true }),
      database(4, 'refusing', { connectable: false }),
      database(5, 'known'),
      database(6, 'new'),
    ];
    const { found } = discover([tenant('known', 5)], databases, all);
    expect(found).toMatchObject([{ name: 'new', database: 'new', oid: 6 }]);
    expect(isNothing(discover([tenant('known', 5)], databases, registered))).toBe(true);
  });

  it('discovery gives a new tenant a free name, and skips a database name that a tenant elsewhere has', () => {
    const tenants = [tenant('a', 7, { database: 'b' }), tenant('default', null, { database: 'far', elsewhere: true })];
    const { found } = discover(tenants, [database(7, 'b'), database(8, 'a'), database(9, 'far')], all);
    expect(found).toMatchObject([{ name: 'a-8', database: 'a' }]);
  });

  it('discovery records the oid of a registered tenant’s database, also if it was created again', () => {
    const tenants = [tenant('a', null), tenant('b', 3)];
    const { seen, gone } = discover(tenants, [database(1, 'a'), database(4, 'b')], registered);
    expect(seen).toEqual([
      { id: 'id of a', from: null, oid: 1 },
      { id: 'id of b', from: 3, oid: 4 },
    ]);
    expect(gone).toEqual([]);
  });

  it('discovery follows a renamed database, and renames a tenant of the same name if the new name is free', () => {
    const tenants = [tenant('a', 1), tenant('shop', 2, { database: 'b' }), tenant('c', 3)];
    const databases = [database(1, 'a2'), database(2, 'b2'), database(3, 'shop')];
    expect(discover(tenants, databases, registered).renamed).toMatchObject([
      { id: 'id of a', name: 'a2', database: 'a2' },
      { id: 'id of shop', name: 'shop', database: 'b2' },
      { id: 'id of c', name: 'c', database: 'shop' },
    ]);
  });

  it('discovery follows two databases that swap names, and does not take the name of another tenant', () => {
    const swapped = [database(1, 'b'), database(2, 'a'), database(3, 'c2')];
    const tenants = [tenant('a', 1), tenant('b', 2), tenant('c', 3), tenant('c2', 9)];
    expect(discover(tenants, swapped, registered).renamed).toMatchObject([
      { id: 'id of a', name: 'b', database: 'b' },
      { id: 'id of b', name: 'a', database: 'a' },
      { id: 'id of c', name: 'c', database: 'c2' },
      { id: 'id of c2', name: 'c2', database: 'c2 (gone, 9)' },
    ]);
  });

  it('discovery gives a database’s name to its tenant, and a marked name to a tenant that is gone or elsewhere', () => {
    const far = tenant('default', null, { database: 'far', elsewhere: true });
    const long = 'ü'.repeat(31);
    const tenants = [tenant('gone', 1, { database: long }), far, tenant('a', 2, { name: 'x' }), tenant('y', 3)];
    const { renamed } = discover(tenants, [database(2, long), database(3, 'far')], registered);
    expect(renamed.map(({ database: to }) => to)).toEqual([
      `${'ü'.repeat(26)} (gone, 1)`,
      'far (elsewhere)',
      long,
      'far',
    ]);
    expect(renamed.map(({ name }) => name)).toEqual(['gone', 'default', 'x', 'far']);
  });

  it('a database whose name cannot be written in an address is reported, and not discovered', () => {
    const databases = [database(1, 'what?'), database(2, 'a/../b'), database(3, '.'), database(4, '..')];
    expect([...presences([tenant('a', 1)], databases).values()]).toEqual(['unnameable']);
    expect(discover([tenant('a', 1)], databases, all).found).toEqual([]);
  });

  it('discovery forgets discovered tenants whose database is gone; with `all` also registered ones', () => {
    const tenants = [
      tenant('found', 1, { discovered: true }),
      tenant('made', 2),
      tenant('being made', null),
      tenant('default', 3),
      tenant('far', null, { elsewhere: true }),
    ];
    const names = (rules: DiscoveryRules) => discover(tenants, [], rules).gone.map(({ name }) => name);
    expect(names(registered)).toEqual(['found']);
    expect(names(all)).toEqual(['found', 'made']);
  });

  it('discovery does not mistake another tenant’s database for a recreated one', () => {
    const tenants = [tenant('a', 1), tenant('b', 2)];
    const { seen, renamed } = discover(tenants, [database(2, 'a')], registered);
    expect(seen).toEqual([]);
    expect(renamed).toMatchObject([
      { id: 'id of a', database: 'a (gone, 1)' },
      { id: 'id of b', database: 'a' },
    ]);
  });

  it('each tenant’s database has a presence', () => {
    const tenants = [
      tenant('a', 1),
      tenant('b', 2),
      tenant('c', 3),
      tenant('d', 4),
      tenant('e', null, { elsewhere: true }),
    ];
    const databases = [
      database(1, 'a'),
      database(2, 'b', { template: true }),
      database(3, 'c', { connectable: false }),
    ];
    expect([...presences(tenants, databases).values()]).toEqual(['there', 'template', 'refusing', 'gone', 'unlisted']);
  });
});
