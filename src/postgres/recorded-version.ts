/**
 * The version that a tenant's database records. Where there is none, asking is no error in the server's log. The table is
 * whatever somebody has made of it: no more of it is read than a version can have.
 */
import { type Db, sql } from '../kernel/sql.ts';

export const longestVersion = 100;

/** Undefined: Millrace is not installed there. */
export async function recordedVersion(db: Db): Promise<string | null | undefined> {
  const { table } = await db.one<{ table: string | null }>(sql`
    select to_regclass('millrace.installation')::text as table`);
  return table === null ? undefined : presentVersion(db);
}

/** Of one in which it was installed a moment ago: in one statement. Undefined: nothing is recorded. */
export async function presentVersion(db: Db): Promise<string | null | undefined> {
  const [row] = await db.rows<{ version: string | null }>(sql`
    select left(version::text, ${longestVersion}::integer + 1) as version from millrace.installation limit 1`);
  return row?.version;
}
