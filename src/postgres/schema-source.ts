/**
 * What makes a schema: its numbered migrations and its set of functions. A package has them in `migrations/<set>` and
 * `dist/sql/<set>.sql`. Packages of 0.1.0 have no set: their migrations create the functions.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isSource, packageFile } from '../kernel/process/package-files.ts';
import { composeFunctionSet, type FunctionSet, parseFunctionSet, type SchemaSet, schemaOf } from './function-set.ts';
import { type Migration, readMigrations } from './migrate.ts';

export interface SchemaSource {
  readonly schema: 'control' | 'millrace';
  readonly migrations: readonly Migration[];
  readonly functions: FunctionSet | undefined;
}

/** From this package. When it runs from src/, there may be no build, or an old one. */
export async function ownSchemaSource(set: SchemaSet): Promise<SchemaSource> {
  if (!isSource) return readSchemaSource(packageFile(), set);
  const migrations = await readMigrations(packageFile('migrations', set));
  return { schema: schemaOf(set), migrations, functions: await composeFunctionSet(packageFile('src'), set) };
}

/** From the folder of a package, such as another version's engine. */
export async function readSchemaSource(folder: string, set: SchemaSet): Promise<SchemaSource> {
  const migrations = await readMigrations(join(folder, 'migrations', set));
  const text = await readFile(join(folder, 'dist', 'sql', `${set}.sql`), 'utf8').catch((error: unknown) => {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  });
  return { schema: schemaOf(set), migrations, functions: text === undefined ? undefined : parseFunctionSet(text) };
}
