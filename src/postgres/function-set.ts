/**
 * SQL functions as a set. Each function is one file, `src/<room>/sql/<name>.sql`, with one `create or replace function`.
 * The build joins them to one script per schema, `dist/sql/<set>.sql`; tests join them when they read them.
 *
 * The script runs after the migrations, in their transaction. It
 * 1. drops functions of the former set that it lacks, or has with other parameters or another result;
 * 2. creates or replaces its own, so that privileges and views on unchanged ones survive;
 * 3. records its checksum and its declarations in `installation`.
 * It leaves all other functions alone.
 */
import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';

export type SchemaSet = 'control' | 'tenant';

export interface FunctionSet {
  readonly names: readonly string[];
  readonly checksum: string;
  /** The whole script, without begin and commit. */
  readonly text: string;
}

/** Rooms of src/ whose functions belong to a set. */
const roomsOf: Readonly<Record<SchemaSet, readonly string[]>> = {
  control: ['control', 'events'],
  tenant: ['bus', 'errands', 'events', 'flows', 'jobs', 'postgres', 'runs', 'scheduler'],
};

export function schemaOf(set: SchemaSet): 'control' | 'millrace' {
  return set === 'control' ? 'control' : 'millrace';
}

/** A set from the files in `src`, the folder that has the rooms. */
export async function composeFunctionSet(src: string, set: SchemaSet): Promise<FunctionSet> {
  const folders = roomsOf[set].map((room) => join(src, room, 'sql'));
  const files = (await Promise.all(folders.map(readFolder))).flat();
  return functionSetOf(schemaOf(set), files);
}

export function functionSetOf(schema: 'control' | 'millrace', files: readonly FunctionFile[]): FunctionSet {
  return parseFunctionSet(scriptOf(schema, files.map(declare)));
}

/** A set from the script that a build has made. */
export function parseFunctionSet(text: string): FunctionSet {
  const checksum = /^-- SHA-256 of the set: ([0-9a-f]{64})$/m.exec(text)?.[1];
  const names = [...text.matchAll(/^-- function (\w+)$/gm)].map(([, name = '']) => name);
  if (checksum === undefined || names.length === 0) throw new Error('not a set of functions');
  return { names, checksum, text };
}

interface FunctionFile {
  readonly name: string;
  readonly text: string;
}

interface DeclaredFunction extends FunctionFile {
  /** Everything but the body. `create or replace` cannot change all of it. */
  readonly declaration: string;
}

async function readFolder(folder: string): Promise<FunctionFile[]> {
  const names = (await readdir(folder)).filter((name) => name.endsWith('.sql')).toSorted();
  return Promise.all(
    names.map(async (name) => ({
      name: name.slice(0, -'.sql'.length),
      text: await readFile(join(folder, name), 'utf8'),
    })),
  );
}

function declare({ name, text }: FunctionFile): DeclaredFunction {
  const declared = /\bcreate or replace function ((\w+)\(.*?)\s+as\s+[$']/s.exec(text);
  if (declared?.[2] !== name) throw new Error(`${name}.sql does not contain "create or replace function ${name}("`);
  return { name, text: text.trim(), declaration: (declared[1] ?? '').replaceAll(/\s+/g, ' ') };
}

function scriptOf(schema: string, files: readonly DeclaredFunction[]): string {
  const hash = createHash('sha256');
  for (const { name, text } of files) hash.update(`${name}\0${text}\0`);
  const checksum = hash.digest('hex');
  const parts = [
    `-- The SQL functions of Millrace in the schema ${schema}, as one set.
-- SHA-256 of the set: ${checksum}
-- Run it after the migrations, in their transaction.`,
    `set local search_path to ${schema};
-- functions call each other: they can be created in any order
set local check_function_bodies = off;`,
    replaceFormer(schema, checksum, files),
    ...files.map(({ name, text }) => `-- function ${name}\n${text}`),
  ];
  return `${parts.join('\n\n')}\n`;
}

function replaceFormer(schema: string, checksum: string, files: readonly DeclaredFunction[]): string {
  return `do $set$
declare
  v_declared text[] := array[
    ${files.map(({ declaration }) => sqlLiteral(declaration)).join(',\n    ')}
  ];
  v_former regprocedure;
begin
  for v_former in
    select p.oid
      from pg_proc p
     where p.pronamespace = '${schema}'::regnamespace and p.prokind = 'f'
       and p.proname in (
         select split_part(d.declaration, '(', 1)
           from installation, unnest(functions_declared) as d (declaration)
          where d.declaration <> all (v_declared))
  loop
    execute format('drop function %s', v_former);
  end loop;
  update installation set functions_checksum = '${checksum}', functions_declared = v_declared;
end $set$;`;
}

export function sqlLiteral(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}
