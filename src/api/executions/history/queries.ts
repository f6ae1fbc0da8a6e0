/** Statements about the history of an execution. */
import { type Db, sql } from '../../../kernel/sql.ts';

/** The lengths of the entries after a revision, in order. They decide how many of them are read. */
export function entryLengths(
  db: Db,
  { execution, after, limit }: { readonly execution: string; readonly after: number; readonly limit: number },
): Promise<{ rev: number; chars: number }[]> {
  return db.rows(sql`
    select rev, octet_length(entry::text) as chars
      from commit
     where execution_id = ${execution}::uuid and rev > ${after}
     order by rev
     limit ${limit}`);
}
