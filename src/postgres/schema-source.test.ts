import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { ownSchemaSource, readSchemaSource } from './schema-source.ts';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'millrace-package-'));
  await mkdir(join(folder, 'migrations', 'tenant'), { recursive: true });
  await mkdir(join(folder, 'dist', 'sql'), { recursive: true });
  await writeFile(join(folder, 'migrations', 'tenant', '0001_a.sql'), 'create table a ()');
});
afterEach(() => rm(folder, { recursive: true }));

const putSet = (text: string): Promise<void> => writeFile(join(folder, 'dist', 'sql', 'tenant.sql'), text);

it('A package of 0.1.0 has migrations and no set of functions', async () => {
  const { migrations, functions } = await readSchemaSource(folder, 'tenant');
  expect(migrations.map(({ name }) => name)).toEqual(['0001_a.sql']);
  expect(functions).toBeUndefined();
});

it('The set of a package is read as it was joined', async () => {
  const { functions } = await ownSchemaSource('tenant');
  await putSet(functions?.text ?? '');
  expect((await readSchemaSource(folder, 'tenant')).functions).toEqual(functions);
  expect(functions?.names).toContain('finish_runs');
});

it('A file that is not a set of functions is refused', async () => {
  await putSet('create function a() returns void');
  await expect(readSchemaSource(folder, 'tenant')).rejects.toThrow('not a set of functions');
});
