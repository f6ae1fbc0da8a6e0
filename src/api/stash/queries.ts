/** Statements about the stash. Values are encrypted before they get here (I12). */
import { type Db, type Sql, sql } from '../../kernel/sql.ts';

/** The global stash, that of a project, or that of a job at an instant. */
export type Stash =
  | { readonly kind: 'global' }
  | { readonly kind: 'project'; readonly project: string }
  | { readonly kind: 'job'; readonly job: string; readonly instant: Date };

/** The table with the rows of one stash. */
function rowsOf(stash: Stash): Sql {
  if (stash.kind === 'global') return sql`global_stash where true`;
  if (stash.kind === 'project') return sql`project_stash where project_id = ${stash.project}`;
  return sql`job_stash where job_id = ${stash.job} and instant = ${stash.instant}`;
}

export async function listNames(
  db: Db,
  stash: Stash,
  { after, limit }: { readonly after: string | undefined; readonly limit: number },
): Promise<string[]> {
  const further = after === undefined ? sql`true` : sql`name > ${after}`;
  const rows = await db.rows<{ name: string }>(sql`
    select name from ${rowsOf(stash)} and ${further} order by name limit ${limit}`);
  return rows.map((row) => row.name);
}

export async function findSealed(db: Db, stash: Stash, name: string): Promise<Buffer | undefined> {
  const row = await db.maybeOne<{ data: Buffer }>(sql`select data from ${rowsOf(stash)} and name = ${name}`);
  return row?.data;
}

export type SealedEntry = { readonly name: string; readonly data: Buffer };

/**
 * The entries of these names that tasks of a project see; an entry of the project hides the global one. If they have more than
 * `maxBytes` in total, returns the number of bytes and reads no value: 1,000 entries of 4 MiB would be 4 GB.
 */
export async function findVisible(
  db: Db,
  { project, names, maxBytes }: { project: string | null; names: readonly string[]; maxBytes: number },
): Promise<readonly SealedEntry[] | { readonly excessBytes: number }> {
  const rows = await db.rows<{ name: string; data: Buffer | null; bytes: number }>(sql`
    with visible as (
      select distinct on (name) name, data
        from (
          select name, data, 1 as place
            from project_stash
           where project_id = ${project} and name = any (${names}::text[])
          union all
          select name, data, 2
            from global_stash
           where name = any (${names}::text[])
        ) as named
       order by name, place
    ),
    measured as (
      select name, data, (sum(octet_length(data)) over ())::float8 as bytes
        from visible
    )
    select name, case when bytes <= ${maxBytes} then data end as data, bytes
      from measured`);
  const entries = rows.flatMap(({ name, data }) => (data === null ? [] : [{ name, data }]));
  const [first] = rows;
  return first === undefined || entries.length > 0 ? entries : { excessBytes: first.bytes };
}

/** Returns the number of removed entries. */
export function removeEntry(db: Db, stash: Stash, name: string): Promise<number> {
  return db.exec(sql`delete from ${rowsOf(stash)} and name = ${name}`);
}

export async function putEntry(db: Db, stash: Stash, name: string, data: Buffer): Promise<void> {
  switch (stash.kind) {
    case 'global':
      await db.exec(sql`
        insert into global_stash (name, data)
        values (${name}, ${data})
        on conflict (name) do update set data = excluded.data`);
      return;
    case 'project':
      await db.exec(sql`
        insert into project_stash (project_id, name, data)
        values (${stash.project}, ${name}, ${data})
        on conflict (project_id, name) do update set data = excluded.data`);
      return;
    case 'job':
      await db.exec(sql`
        insert into job_stash (job_id, instant, name, data)
        values (${stash.job}, ${stash.instant}, ${name}, ${data})
        on conflict (job_id, instant, name) do update set data = excluded.data`);
  }
}
