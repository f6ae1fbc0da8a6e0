/**
 * The version that a tenant's database records. A missing table causes no error in the server's log. A foreign table may have
 * the same name, so no more of it is read than the longest version.
 */
import { type Db, sql } from '../kernel/sql.ts';

export const longestVersion = 100;

/** Undefined: Millrace is not installed. */
export async function recordedVersion(db: Db): Promise<string | null | undefined> {
  const { table } = await db.one<{ table: string | null }>(sql`
    select to_regclass('millrace.installation')::text as table`);
  return table === null ? undefined : presentVersion(db);
}

/** For a database in which Millrace is known to be installed: one statement. Undefined: no version is recorded. */
export async function presentVersion(db: Db): Promise<string | null | undefined> {
  const [row] = await db.rows<{ version: string | null }>(sql`
    select left(version::text, ${longestVersion}::integer + 1) as version from millrace.installation limit 1`);
  return row?.version;
}
