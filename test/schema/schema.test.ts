/** Checks that the committed files in `schema/` match the code. `npm run schema` rewrites them. */
import { readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { engineVersion } from '../../src/engine/engine.ts';
import { jobJsonSchema } from '../../src/jobs/document/json-schema.ts';
import { newId } from '../../src/kernel/id.ts';
import { onClient } from '../../src/kernel/sql.ts';
import { onDatabase } from '../../src/postgres/address.ts';
import { ensureDatabase, withClient } from '../../src/postgres/databases.ts';
import { migrate } from '../../src/postgres/migrate.ts';
import { ownSchemaSource } from '../../src/postgres/schema-source.ts';
import { serverAddress } from '../harness/postgres-server.ts';
import { dumpSchema } from '../harness/schema-dump.ts';

async function compare(file: string, made: string): Promise<void> {
  const path = fileURLToPath(new URL(`../../schema/${file}`, import.meta.url));
  if (process.env['MILLRACE_WRITE_SCHEMA'] === 'true') await writeFile(path, made);
  expect(made, `schema/${file} is out of date; run npm run schema`).toBe(await readFile(path, 'utf8'));
}

async function dumpMigrated(set: 'control' | 'tenant', schema: 'control' | 'millrace'): Promise<string> {
  const address = onDatabase(serverAddress(), `schema_${set}_${newId().slice(-12)}`);
  await ensureDatabase(address);
  return withClient(address, async (client) => {
    await migrate(client, { ...(await ownSchemaSource(set)), version: engineVersion });
    return dumpSchema(onClient(client), schema);
  });
}

it('the schema of the control database matches schema/control.txt', async () =>
  compare('control.txt', await dumpMigrated('control', 'control')));
it('the schema of a tenant matches schema/tenant.txt', async () =>
  compare('tenant.txt', await dumpMigrated('tenant', 'millrace')));
it('the JSON schema of a job document matches schema/job.schema.json', async () =>
  compare('job.schema.json', `${JSON.stringify(jobJsonSchema(), null, 2)}\n`));
