/** Commands that users are advised to run. Each can be copied as it stands, whatever the names of tenants and databases. */
import { defaultTenant } from '../contract/tenants.ts';
import { shellWord } from '../kernel/text/shell-word.ts';
import type { Db } from '../kernel/sql.ts';
import type { Address } from '../postgres/address.ts';
import { quoted } from '../postgres/databases.ts';
import type { Reason } from '../control/reasons.ts';
import { isHalfDropped } from './queries.ts';

/** If the name of a discovered database is not allowed for a tenant, a similar one is proposed. */
export function adoptCommand(name: string, database: string): string {
  const proposed = makeAllowed(name);
  return `millrace tenant adopt ${proposed}${proposed === database ? '' : ` --database ${shellWord(database)}`}`;
}

/** For a tenant whose database accepts no connections. */
export async function howToLetIn(
  control: Db,
  of: { readonly name: string; readonly database: string },
): Promise<string> {
  const database = quoted(of.database);
  if (!(await isHalfDropped(control, of.database)))
    return `alter database ${database} with is_template false allow_connections true`;
  const half = 'its drop was interrupted, and it can only be dropped again';
  return of.name === defaultTenant
    ? `${half}: drop database ${database}, then restore it, or restart Millrace, which makes an empty one`
    : `${half}: \`millrace tenant drop ${shellWord(of.name)}\``;
}

/** For a database that the scheduler may not write, or not even read. Returns undefined for other causes. */
export function howToLetWrite({ cause }: Reason, { url, database }: Address): string | undefined {
  if (cause === 'read_only')
    return `connected to another database, alter database ${quoted(database)} reset default_transaction_read_only; a hot standby takes writes after select pg_promote()`;
  if (cause !== 'missing_right') return undefined;
  const { username } = new URL(url);
  const role = username === '' ? 'its role' : quoted(decodeURIComponent(username));
  const grants = [
    'usage on schema millrace',
    'select, insert, update, delete on all tables in schema millrace',
    'usage, select on all sequences in schema millrace',
  ];
  return `in the database ${database}, ${grants.map((grant) => `grant ${grant} to ${role}`).join('; ')}`;
}

const maxNameLength = 63;

/** The rule for names of tenants, as users see it. */
export const nameRule =
  'lower-case letters, digits, - and _; begins and ends with a letter or digit; at most 63 characters';

export function isTenantName(name: string): boolean {
  return name !== '' && makeAllowed(name) === name;
}

function makeAllowed(name: string): string {
  const allowed = name.toLowerCase().replaceAll(/[^a-z0-9_-]+/g, '-');
  return allowed.slice(0, maxNameLength).replaceAll(/^[_-]+|[_-]+$/g, '') || 'tenant';
}
