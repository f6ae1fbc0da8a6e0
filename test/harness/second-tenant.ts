/** Where a running product's embedded server listens, for tests that make or look at tenants in plain SQL. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Address, addressOfSocket } from '../../src/postgres/address.ts';
import { role } from '../../src/postgres/embedded/cluster.ts';

/** The server's own word on where it listens: lines 4 and 5 of its pid file are the port and the socket's folder. */
export async function controlAddress(home: string): Promise<Address> {
  const lines = (await readFile(join(home, 'postgres', 'postmaster.pid'), 'utf8')).split('\n');
  return addressOfSocket({ host: lines[4] ?? '', port: Number(lines[3]), user: role }, 'millrace');
}
