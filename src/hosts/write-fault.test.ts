/** Roles that cannot write in a tenant's database. */
import type { ClientBase } from 'pg';
import { expect, it } from 'vitest';
import { makeInstalledTenant } from '../../test/harness/fresh-database.ts';
import { withClient } from '../postgres/databases.ts';
import { formatCause } from '../control/format-reason.ts';
import { findWriteFault } from './write-fault.ts';

const writeFault = async (client: ClientBase): Promise<string | undefined> => {
  const fault = await findWriteFault(client);
  return fault && formatCause(fault);
};

it('a role has a write fault exactly if it lacks a privilege on one of our tables or sequences', async () => {
  const tenant = await makeInstalledTenant();
  await withClient(tenant.address, async (client) => {
    expect(await writeFault(client)).toBeUndefined();
    // gone with the transaction
    await client.query('begin; create role guest; grant usage on schema millrace to guest; set local role guest');
    expect(await writeFault(client)).toMatch(/^its role lacks a right: guest may not write millrace\.\w+$/);
    const grant = 'grant select, insert, update, delete on all tables in schema millrace to guest';
    await client.query(`reset role; ${grant}; set local role guest`);
    expect(await writeFault(client)).toMatch(/^its role lacks a right: guest may not write millrace\.\w+_seq$/);
    await client.query('reset role; grant usage on all sequences in schema millrace to guest; set local role guest');
    expect(await writeFault(client)).toMatch(/_seq$/);
    await client.query('reset role; grant select on all sequences in schema millrace to guest; set local role guest');
    expect(await writeFault(client)).toBeUndefined();
    await client.query('reset role; create role dba; create table millrace.kept as table millrace.job');
    await client.query('alter table millrace.kept owner to dba; set local role guest');
    expect(await writeFault(client), 'a table of another owner does not count').toBeUndefined();
    await client.query(
      'reset role; alter sequence millrace.event_seq owner to dba; revoke all on sequence millrace.event_seq from guest',
    );
    await client.query('set local role guest');
    expect(await writeFault(client), 'our sequence counts, although its owner has changed').toMatch(/event_seq$/);
    await client.query('reset role; grant usage, select on sequence millrace.event_seq to guest');
    await client.query('reset role; revoke update on millrace.live from guest; set local role guest');
    expect(await writeFault(client)).toBe('its role lacks a right: guest may not write millrace.live');
    await client.query('rollback; begin read only');
    expect(await writeFault(client)).toMatch(/^its database is read-only/);
    await client.query('rollback');
  });
  await tenant.close();
});
