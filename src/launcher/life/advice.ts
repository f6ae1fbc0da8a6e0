/** What people are told to type: each command can be copied as it stands, whatever tenants and databases are called. */
import { shellWord } from '../../kernel/shell-word.ts';

/** A database that was found may have a name that a tenant cannot be given; then one like it is proposed. */
export function adoptCommand(name: string, database: string): string {
  const proposed = givable(name);
  return `millrace tenant adopt ${proposed}${proposed === database ? '' : ` --database ${shellWord(database)}`}`;
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
