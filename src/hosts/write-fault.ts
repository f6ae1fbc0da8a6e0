/**
 * Checks whether a scheduler can write in a tenant's database, before it starts. Without write access it would read due
 * triggers and fail at each write.
 */
import type { ClientBase } from 'pg';
import { onClient, sql } from '../kernel/sql.ts';
import type { Reason } from '../control/reasons.ts';

interface Access {
  readonly role: string;
  readonly isReadOnly: boolean;
  /** The first table or sequence that the role may not write; null: none. */
  readonly closed: string | null;
}

/** Returns undefined if the role can write. */
export async function findWriteFault(client: ClientBase): Promise<Reason | undefined> {
  const { role, isReadOnly, closed } = await onClient(client).one<Access>(sql`
    select current_user::text as role, current_setting('transaction_read_only')::boolean as "isReadOnly",
           (select min(format('%I.%I', 'millrace', relname))
              from pg_class
             where relnamespace = to_regnamespace('millrace')
               -- tables of other owners are not ours; writing the event log needs no right to its partitions
               and (relkind = 'S'
                    or relowner = (select relowner from pg_class where oid = to_regclass('millrace.installation')))
               and not relispartition
               and case when relkind in ('r', 'p')
                        then not (has_table_privilege(oid, 'select') and has_table_privilege(oid, 'insert')
                                  and has_table_privilege(oid, 'update') and has_table_privilege(oid, 'delete'))
                        else relkind = 'S' and not (has_sequence_privilege(oid, 'usage')
                                                    and has_sequence_privilege(oid, 'select')) end) as closed`);
  if (isReadOnly) return { code: 'crashed', cause: 'read_only', data: {} };
  if (closed === null) return undefined;
  return { code: 'crashed', cause: 'missing_right', data: { text: `${role} may not write ${closed}` } };
}
