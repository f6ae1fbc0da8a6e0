import { expect, it } from 'vitest';
import { makeFreshDatabase } from '../../../test/harness/fresh-database.ts';
import { newId } from '../../kernel/id.ts';
import { onClient, sql } from '../../kernel/sql.ts';
import { withClient } from '../../postgres/databases.ts';
import { migrate } from '../../postgres/migrate.ts';
import { ownSchemaSource } from '../../postgres/schema-source.ts';

it('sessions of an older release get an id, and those of a link the root key of the installation', async () => {
  const fresh = await makeFreshDatabase();
  const source = await ownSchemaSource('control');
  const [root, ann] = [newId(), newId()];
  await withClient(fresh.address, async (client) => {
    const older = source.migrations.filter(({ number }) => number < 5);
    await migrate(client, { schema: 'control', migrations: older, version: '0.1.0' });
    await client.query('set search_path to control');
    const db = onClient(client);
    await db.exec(sql`
      insert into key (id, name, role, hash, created_at, created_by)
      values (${root}, 'root', 'root', 'r', now(), 'installation'), (${ann}, 'ann', 'root', 'a', now(), 'key:root')`);
    await db.exec(sql`
      insert into session (hash, key_id, role, actor, created_at, expires_at)
      values ('1', null, 'root', 'sign-in link', now(), now()), ('2', ${ann}, 'root', 'key:ann', now(), now())`);
    await db.exec(sql`insert into sign_in_link (hash, created_at, expires_at) values ('l', now(), now())`);
    await migrate(client, { ...source, version: '0.2.0' });
    await client.query('set search_path to control');
    const rows = await db.rows(sql`select key_id, opened_with, id is not null as has_id from session order by hash`);
    expect(rows).toEqual([
      { key_id: root, opened_with: 'link', has_id: true },
      { key_id: ann, opened_with: 'key', has_id: true },
    ]);
    expect(await db.rows(sql`select hash from sign_in_link`)).toEqual([]);
  });
  await fresh.close();
});
