/** Checks SQL functions: every body is valid, and every file belongs to a set. */
import { existsSync, readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { engineVersion } from '../../src/engine/engine.ts';
import { withClient } from '../../src/postgres/databases.ts';
import { migrate } from '../../src/postgres/migrate.ts';
import { ownSchemaSource } from '../../src/postgres/schema-source.ts';
import { makeFreshDatabase } from '../harness/fresh-database.ts';

it.each(['control', 'tenant'] as const)(
  'the bodies of the %s functions are valid once all functions exist',
  async (set) => {
    const fresh = await makeFreshDatabase();
    const { functions, ...rest } = await ownSchemaSource(set);
    const script = functions?.text ?? '';
    const off = 'set local check_function_bodies = off;';
    expect(script).toContain(off);
    await withClient(fresh.address, async (client) => {
      await migrate(client, { ...rest, functions, version: engineVersion });
      // bodies are checked at creation, so the script is repeated now that all functions exist
      await client.query(`begin; ${script.replace(off, '')}; commit`);
    });
    await fresh.close();
  },
);

it('every SQL file of src/ belongs to a set, and no two files have the same name', async () => {
  const src = fileURLToPath(new URL('../../src/', import.meta.url));
  const files = readdirSync(src)
    .filter((room) => existsSync(`${src}${room}/sql`))
    .flatMap((room) => readdirSync(`${src}${room}/sql`))
    .map((name) => name.replace('.sql', ''));
  const sets = await Promise.all([ownSchemaSource('control'), ownSchemaSource('tenant')]);
  const names = sets.flatMap(({ functions }) => functions?.names ?? []);
  expect(files.toSorted()).toEqual([...new Set(names)].toSorted());
});
