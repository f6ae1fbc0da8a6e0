import { Client } from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { administer, serverAddress } from '../../test/harness/postgres-server.ts';
import {
  addressIn,
  eventsOf,
  holdDrain,
  makeTestLife,
  messagesAbout,
  type TestLife,
} from '../../test/harness/tenant-life.ts';
import { until } from '../../test/harness/until.ts';
import { sql } from '../kernel/sql.ts';
import { clientConfig } from '../postgres/address.ts';
import { createTenant } from './create.ts';
import { dropTenant } from './drop.ts';
import type { Life } from './life.ts';
import { databaseNamed, findLifeRow } from './queries.ts';
import { renameTenant } from './rename.ts';

const actor = 'key:ann';
let life: TestLife;
beforeAll(async () => {
  life = await makeTestLife();
});
afterAll(() => life.close());

async function make(name = life.name()): Promise<string> {
  await createTenant(life, { name, actor });
  return name;
}
const addressOf = (name: string) => addressIn(life, name);

/** Opens a session that is not Millrace's. */
async function enter(name: string): Promise<Client> {
  const guest = new Client(clientConfig(addressOf(name), 'a guest'));
  guest.on('error', () => {});
  await guest.connect();
  return guest;
}

/** Acts with a role that owns the database, but may not end sessions of other roles. */
async function asOwner(name: string): Promise<Life> {
  await administer(serverAddress(), `create role ${name} login`);
  await administer(serverAddress(), `alter database ${name} owner to ${name}`);
  await administer(life.controlAddress, `grant usage on schema control to ${name}`);
  const url = new URL(life.controlAddress.url);
  url.searchParams.set('options', `-c role=${name}`);
  return { ...life, controlAddress: { ...life.controlAddress, url: url.href } };
}

/** Whether a second statement that renames the database is running. */
function isRenamedAgain(name: string): () => Promise<boolean> {
  const begun = new Set<string>();
  return async () => {
    const rows = await life.control.rows<{ at: Date }>(sql`
      select query_start as at
        from pg_stat_activity
       where pid <> pg_backend_pid() and state = 'active' and query ilike ${`alter database%${name}%rename%`}`);
    for (const { at } of rows) begun.add(at.toISOString());
    return begun.size > 1;
  };
}

describe.concurrent('drop', () => {
  it('dropping sends a STOP and removes database, row and keys, although a scheduler is connected', async () => {
    const name = await make();
    const holder = await holdDrain(addressOf(name), life.hub);
    await dropTenant(life, name, { actor });
    await holder.ended;
    expect(await databaseNamed(life.control, name)).toBeUndefined();
    expect(await findLifeRow(life.control, name)).toBeUndefined();
    expect((await messagesAbout(life, name)).at(-1)).toEqual({ kind: 'stop', cause: 'drop', waits: false });
    expect(await eventsOf(life, name)).toEqual(['tenant.created', 'tenant.dropped']);
    await expect(dropTenant(life, name, { actor })).rejects.toMatchObject({ code: 'not_found' });
    await make(name);
  });

  it('dropping ends sessions that do not leave by themselves', async () => {
    const name = await make();
    const holder = await holdDrain(addressOf(name));
    await dropTenant(life, name, { actor });
    await holder.ended;
    expect(await databaseNamed(life.control, name)).toBeUndefined();
  });

  it('dropping removes a tenant whose database is already gone', async () => {
    const name = await make();
    await administer(serverAddress(), `drop database ${name}`);
    await dropTenant(life, name, { actor });
    expect(await findLifeRow(life.control, name)).toBeUndefined();
  });

  it('dropping removes a renamed database of the tenant, and never another one that has its former name', async () => {
    const [name, moved] = [await make(), life.name()];
    await administer(serverAddress(), `alter database ${name} rename to ${moved}`);
    await administer(serverAddress(), `create database ${name}`);
    await dropTenant(life, name, { actor });
    expect(await databaseNamed(life.control, moved)).toBeUndefined();
    expect(await databaseNamed(life.control, name)).toBeDefined();
  });

  it('a drop that fails restores the tenant, starts it again, and names the session in the way', async () => {
    const name = await make();
    const limited = await asOwner(name);
    const guest = await enter(name);
    const { rows } = await guest.query<{ pid: number }>('select pg_backend_pid() as pid');
    await expect(dropTenant(limited, name, { actor })).rejects.toThrow(
      `database "${name}" is being accessed by other users; it is held by backend ${rows[0]?.pid} (a guest)`,
    );
    expect(await findLifeRow(life.control, name)).toMatchObject({ desired: 'on' });
    expect((await messagesAbout(life, name)).map(({ kind }) => kind)).toEqual(['restart', 'stop', 'start']);
    await guest.end();
    await dropTenant(limited, name, { actor });
    await administer(life.controlAddress, `drop owned by ${name}; drop role ${name}`);
  }, 30_000);

  it('a second drop completes an interrupted one, or restores the state before the first if it fails', async () => {
    const name = await make();
    await life.control.exec(sql`update tenant set desired = 'off', leaving = 'on' where name = ${name}`);
    const limited = await asOwner(name);
    const guest = await enter(name);
    await expect(dropTenant(limited, name, { actor })).rejects.toThrow('(a guest)');
    expect(await findLifeRow(life.control, name)).toMatchObject({ desired: 'on' });
    await guest.end();
    await life.control.exec(sql`update tenant set desired = 'off', leaving = 'on' where name = ${name}`);
    await dropTenant(limited, name, { actor });
    expect(await databaseNamed(life.control, name)).toBeUndefined();
    await administer(life.controlAddress, `drop owned by ${name}; drop role ${name}`);
  }, 30_000);

  it('a drop that a prepared transaction blocks names it, and no sessions', async () => {
    const name = await make();
    const guest = await enter(name);
    await guest.query(`begin; create table more (); prepare transaction '${name}'`);
    await expect(dropTenant(life, name, { actor })).rejects.toThrow(
      new RegExp(`was not dropped: .*prepared transactions; it is held by prepared transaction '${name}'$`),
    );
    await guest.query(`rollback prepared '${name}'`);
    await guest.end();
  }, 30_000);

  it('a drop of a database of another owner names no sessions', async () => {
    const name = await make();
    const limited = await asOwner(name);
    await administer(serverAddress(), `alter database ${name} owner to current_user`);
    const guest = await enter(name);
    await expect(dropTenant(limited, name, { actor })).rejects.toThrow(
      new RegExp(`: must be owner of database ${name}$`),
    );
    await guest.end();
    await administer(life.controlAddress, `drop owned by ${name}; drop role ${name}`);
  });

  it('dropping refuses the default tenant', async () => {
    await expect(dropTenant(life, 'default', { actor })).rejects.toMatchObject({ code: 'conflict' });
  });
});

describe.concurrent('rename', () => {
  it('renaming also renames a database of the same name, after a RESTART that waits for the transaction', async () => {
    const [name, to] = [await make(), life.name()];
    const { id } = (await findLifeRow(life.control, name)) ?? {};
    const holder = await holdDrain(addressOf(name), life.hub);
    await renameTenant(life, name, { name: to, actor });
    await holder.ended;
    expect(await findLifeRow(life.control, to)).toMatchObject({ id, database: to });
    expect(await databaseNamed(life.control, name)).toBeUndefined();
    expect(await databaseNamed(life.control, to)).toBeDefined();
    expect((await messagesAbout(life, name)).at(-1)).toEqual({
      kind: 'restart',
      cause: `rename to ${to}`,
      waits: true,
    });
    expect(await eventsOf(life, to)).toEqual(['tenant.renamed']);
    // the same body as in the launcher's event for a rename by plain SQL
    expect(
      await life.control.rows(
        sql`select body::jsonb as body from event where subject = ${id} order by seq desc limit 1`,
      ),
    ).toEqual([{ body: { name: to, from: name, to, from_database: name, database: to } }]);
  });

  it('renaming does not rename a database of another name', async () => {
    const [name, database, to] = [life.name(), life.name(), life.name()];
    await createTenant(life, { name, database, actor });
    await renameTenant(life, name, { name: to, actor });
    expect(await findLifeRow(life.control, to)).toMatchObject({ database });
    expect(await databaseNamed(life.control, database)).toBeDefined();
  });

  it('renaming ends connections of engines that did not leave when they were notified', async () => {
    const [name, to] = [await make(), life.name()];
    const deaf = await holdDrain(addressOf(name));
    await renameTenant(life, name, { name: to, actor });
    await deaf.ended;
    expect(await findLifeRow(life.control, to)).toMatchObject({ database: to });
  }, 20_000);

  it('a rename that fails changes nothing, and names the session in the way', async () => {
    const [name, to] = [await make(), life.name()];
    const guest = await enter(name);
    const { rows } = await guest.query<{ pid: number }>('select pg_backend_pid() as pid');
    // connects while PostgreSQL waits for the second time, and gets in when PostgreSQL has given up
    const late = until('the second attempt has begun', isRenamedAgain(name)).then(() => enter(name));
    await expect(renameTenant(life, name, { name: to, actor })).rejects.toThrow(
      new RegExp(`other users; it is held by backend ${rows[0]?.pid} \\(a guest\\)$`),
    );
    expect(await findLifeRow(life.control, name)).toMatchObject({ database: name, desired: 'on' });
    expect(await findLifeRow(life.control, to)).toBeUndefined();
    expect(await eventsOf(life, to)).toEqual([]);
    await Promise.all([guest, await late].map((client) => client.end()));
  }, 30_000);

  it('renaming refuses names that are taken, and the default tenant', async () => {
    const [name, other, database] = [await make(), await make(), life.name()];
    await administer(serverAddress(), `create database ${database}`);
    const rename = (from: string, to: string) => renameTenant(life, from, { name: to, actor });
    await expect(rename(name, other)).rejects.toThrow(`there is a tenant ${other} already`);
    await expect(rename(name, database)).rejects.toThrow(`there is a database ${database} already`);
    await expect(rename(name, life.controlAddress.database)).rejects.toThrow('the control database');
    await expect(rename('default', life.name())).rejects.toThrow('cannot be renamed');
    await expect(rename('nobody', life.name())).rejects.toMatchObject({ code: 'not_found' });
    await rename(name, name);
    expect(await eventsOf(life, name)).toEqual(['tenant.created']);
  });

  it('two tenants that are renamed to each other’s name at the same time keep their names', async () => {
    const [a, b] = [await make(), await make()];
    const results = await Promise.allSettled([
      renameTenant(life, a, { name: b, actor }),
      renameTenant(life, b, { name: a, actor }),
    ]);
    expect(results.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    const rows = await life.control.rows(
      sql`select name, database from tenant where name in (${a}, ${b}) order by name`,
    );
    expect(rows).toEqual([a, b].sort().map((name) => ({ name, database: name })));
  });
});
