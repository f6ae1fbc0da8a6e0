/** Another tenant beside `default`, made by hand in a running product's embedded server: a database and a row. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { engineVersion, migrationsFolder } from '../../src/engine/engine.ts';
import { newId } from '../../src/kernel/id.ts';
import { onClient } from '../../src/kernel/sql.ts';
import { registerTenant } from '../../src/launcher/control-queries.ts';
import { type Address, addressOfSocket, onDatabase } from '../../src/postgres/address.ts';
import { ensureDatabase, withClient } from '../../src/postgres/databases.ts';
import { role } from '../../src/postgres/embedded-cluster.ts';
import { migrate, readMigrations } from '../../src/postgres/migrate.ts';

/** The server's own word on where it listens: lines 4 and 5 of its pid file are the port and the socket's folder. */
export async function controlAddress(home: string): Promise<Address> {
  const lines = (await readFile(join(home, 'postgres', 'postmaster.pid'), 'utf8')).split('\n');
  return addressOfSocket({ host: lines[4] ?? '', port: Number(lines[3]), user: role }, 'millrace');
}

export async function addTenant(home: string, name: string): Promise<void> {
  const control = await controlAddress(home);
  const database = `tenant_${name}`;
  const address = onDatabase(control, database);
  await ensureDatabase(address);
  const migrations = await readMigrations(migrationsFolder('tenant'));
  await withClient(address, (client) => migrate(client, { schema: 'millrace', migrations, version: engineVersion }));
  await withClient(control, async (client) => {
    await client.query('set search_path to control');
    await registerTenant(onClient(client), { id: newId(), name, database, at: new Date() });
  });
}
