/**
 * Whether a tenant's schema is whole. A restore makes the tables, fills them one after the other, and makes indexes and keys
 * last: before that, the version and all migrations are there while triggers and tasks are not, and nothing keeps a row from
 * being written twice. Whoever works in it then reads half of it, and makes the restore fail.
 */
import type { ClientBase } from 'pg';
import { MillraceError } from '../errors.ts';
import { onClient, sql } from '../kernel/sql.ts';

/** Indexes and foreign keys that the migrations make, without those of the parts of the event log. */
export const madeByMigrations = 73;

/** Rejects where some are missing. More may be there: somebody may have made an index of their own. */
export async function refuseUnwhole(client: ClientBase): Promise<void> {
  const missing = madeByMigrations - (await countParts(client));
  if (missing <= 0) return;
  throw new MillraceError(
    'bad_configuration',
    `${missing} of its indexes and keys are missing: it is still being restored, or somebody has dropped them`,
  );
}

export async function countParts(client: ClientBase): Promise<number> {
  const { parts } = await onClient(client).one<{ parts: number }>(sql`
    with relation as (
      select oid from pg_class where relnamespace = to_regnamespace('millrace') and not relispartition)
    select (select count(*) from pg_index where indrelid in (select oid from relation) and indisvalid)::integer
         + (select count(*) from pg_constraint where conrelid in (select oid from relation) and contype = 'f')::integer
           as parts`);
  return parts;
}
