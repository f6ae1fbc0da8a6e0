/**
 * Whether a scheduler could write in a tenant's database. One that cannot would run and do nothing: it reads what is due, and
 * fails at each of its writes. Asked when a scheduler is started.
 */
import type { ClientBase } from 'pg';
import { onClient, sql } from '../kernel/sql.ts';
import { missingRightStart, readOnlyStart } from '../control/reasons.ts';

interface Access {
  readonly role: string;
  readonly isReadOnly: boolean;
  /** One of the tables and sequences that it may not write. */
  readonly closed: string | null;
}

/** Undefined: it could. */
export async function writeFault(client: ClientBase): Promise<string | undefined> {
  const { role, isReadOnly, closed } = await onClient(client).one<Access>(sql`
    select current_user::text as role, current_setting('transaction_read_only')::boolean as "isReadOnly",
           (select min(format('%I.%I', 'millrace', relname))
              from pg_class
             where relnamespace = to_regnamespace('millrace')
               -- a table that somebody else has put there is nobody's here; and who writes the log needs no right to its parts
               and (relkind = 'S'
                    or relowner = (select relowner from pg_class where oid = to_regclass('millrace.installation')))
               and not relispartition
               and case when relkind in ('r', 'p')
                        then not (has_table_privilege(oid, 'select') and has_table_privilege(oid, 'insert')
                                  and has_table_privilege(oid, 'update') and has_table_privilege(oid, 'delete'))
                        else relkind = 'S' and not (has_sequence_privilege(oid, 'usage')
                                                    and has_sequence_privilege(oid, 'select')) end) as closed`);
  if (isReadOnly) return `${readOnlyStart} (default_transaction_read_only, or a standby)`;
  return closed === null ? undefined : `${missingRightStart}: ${role} may not write ${closed}`;
}
