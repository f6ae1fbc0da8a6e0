import { describe, expect, it } from 'vitest';
import { textWith } from '../../test/harness/expected.ts';
import { freshAddress } from '../../test/harness/fresh-database.ts';
import { administer, serverAddress } from '../../test/harness/postgres-server.ts';
import {
  addressOfSocket,
  addressOfUrl,
  clientConfig,
  describe as described,
  isAddressable,
  onDatabase,
} from './address.ts';
import { ensureDatabase, withClient } from './databases.ts';

describe('making sure that a database exists', () => {
  it('makes it once, in UTF-8, however many try at once', async () => {
    const fresh = freshAddress();
    const { address } = fresh;
    const made = await Promise.all(Array.from({ length: 10 }, () => ensureDatabase(address)));
    expect(made.filter(Boolean)).toHaveLength(1);
    expect(await ensureDatabase(address)).toBe(false);
    const { rows } = await withClient(address, (client) => client.query<object>('show server_encoding'));
    expect(rows).toEqual([{ server_encoding: 'UTF8' }]);
    await fresh.close();
  });

  it('takes names that need quotes', async () => {
    const name = `Fresh "${freshAddress().address.database}"; a/b@c&%41`;
    const address = onDatabase(serverAddress(), name);
    expect(await ensureDatabase(address)).toBe(true);
    const { rows } = await withClient(address, (client) => client.query<object>('select current_database() as name'));
    expect(rows).toEqual([{ name }]);
    await administer(serverAddress(), `drop database "${name.replaceAll('"', '""')}"`);
  });

  it('names the statement to run where the role may not make one', async () => {
    const { address } = freshAddress();
    const role = `role_${address.database}`;
    await administer(serverAddress(), `create role ${role} login`);
    const url = new URL(address.url);
    url.searchParams.set('options', `-c role=${role}`);
    await expect(ensureDatabase({ url: url.href, database: address.database })).rejects.toMatchObject({
      code: 'bad_configuration',
      message: textWith(`run: create database "${address.database}"`),
    });
    await administer(serverAddress(), `drop role ${role}`);
  });
});

describe('an address', () => {
  it('knows its database, and another on the same server with the same options', () => {
    const address = addressOfUrl('postgres://me:p%40ss@db.example:6000/my%20own?sslmode=require');
    expect(address.database).toBe('my own');
    expect(onDatabase(address, 'a/b')).toEqual({
      url: 'postgres://me:p%40ss@db.example:6000/a/b?sslmode=require',
      database: 'a/b',
    });
    expect(addressOfUrl('postgres://host').database).toBe('postgres');
  });

  it('means one database and no other, or there is none', () => {
    for (const name of ['a b', 'a"b', '%2e%2e', 'ü/x', ';@&', '.hidden', 'x'.repeat(63)]) {
      expect(isAddressable(name)).toBe(true);
      expect(addressOfUrl(onDatabase(serverAddress(), name).url).database).toBe(name);
    }
    for (const name of ['a/../b', '..', '.', 'what?', 'a#b', 'caf\uFFFD', '\uD800'])
      expect(isAddressable(name)).toBe(false);
    expect(() => onDatabase(serverAddress(), 'a/../b')).toThrow('a database called "a/../b" has no address; rename it');
  });

  it('is told without its password (I12)', () => {
    expect(described(addressOfUrl('postgres://me:secret@db.example/x'))).toBe('x at db.example:5432');
    const socket = addressOfSocket({ host: '/var/run/it', port: 5433, user: 'o b' }, 'x');
    expect(described(socket)).toBe('x at /var/run/it');
    expect(clientConfig(socket, 'app').connectionString).toContain('host=%2Fvar%2Frun%2Fit');
  });
});
