/** What people are told to type: each command can be copied as it stands, whatever tenants and databases are called. */
import { defaultTenant } from '../contract/tenants.ts';
import { shellWord } from '../kernel/text/shell-word.ts';
import type { Db } from '../kernel/sql.ts';
import type { Address } from '../postgres/address.ts';
import { quoted } from '../postgres/databases.ts';
import { missingRightStart, readOnlyStart } from '../control/reasons.ts';
import { isHalfDropped } from './queries.ts';

/** A database that was found may have a name that a tenant cannot be given; then one like it is proposed. */
export function adoptCommand(name: string, database: string): string {
  const proposed = givable(name);
  return `millrace tenant adopt ${proposed}${proposed === database ? '' : ` --database ${shellWord(database)}`}`;
}

/** Of a tenant whose database lets nobody in. */
export async function howToLetIn(
  control: Db,
  of: { readonly name: string; readonly database: string },
): Promise<string> {
  const database = quoted(of.database);
  if (!(await isHalfDropped(control, of.database)))
    return `alter database ${database} with is_template false allow_connections true`;
  const half = 'a drop of it was cut short, and another one is all that can be done';
  return of.name === defaultTenant
    ? `${half}: drop database ${database}, then restore it, or restart Millrace, which makes an empty one`
    : `${half}: \`millrace tenant drop ${shellWord(of.name)}\``;
}

/** Of a database that lets the scheduler read and not write, or not even read. Undefined: the cause is another one. */
export function howToLetWrite(cause: string, { url, database }: Address): string | undefined {
  if (cause.startsWith(readOnlyStart))
    return `connected to another database, alter database ${quoted(database)} reset default_transaction_read_only; a hot standby takes writes after select pg_promote()`;
  if (!cause.startsWith(missingRightStart)) return undefined;
  const { username } = new URL(url);
  const role = username === '' ? 'its role' : quoted(decodeURIComponent(username));
  if (cause.includes('schema millrace'))
    return `in the database ${database}, grant usage on schema millrace to ${role}`;
  const onTables = `grant select, insert, update, delete on all tables in schema millrace to ${role}`;
  return `in the database ${database}, ${onTables}; grant usage, select on all sequences in schema millrace to ${role}`;
}

const longestName = 63;

/** What a tenant may be called. */
export const nameRule =
  'lower-case letters, digits, - and _; begins and ends with a letter or digit; at most 63 characters';

export function isGivable(name: string): boolean {
  return name !== '' && givable(name) === name;
}

function givable(name: string): string {
  const allowed = name.toLowerCase().replaceAll(/[^a-z0-9_-]+/g, '-');
  return allowed.slice(0, longestName).replaceAll(/^[_-]+|[_-]+$/g, '') || 'tenant';
}
