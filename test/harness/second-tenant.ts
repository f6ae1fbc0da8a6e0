/** The address of a running product's embedded server, for tests that create or read tenants in plain SQL. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Address, addressOfSocket } from '../../src/postgres/address.ts';
import { role } from '../../src/postgres/embedded/cluster.ts';

/** Lines 4 and 5 of the server's pid file are its port and the folder of its socket. */
export async function controlAddress(home: string): Promise<Address> {
  const lines = (await readFile(join(home, 'postgres', 'postmaster.pid'), 'utf8')).split('\n');
  return addressOfSocket({ host: lines[4] ?? '', port: Number(lines[3]), user: role }, 'millrace');
}
