/** The address to open in another tenant: the same page if it has one, otherwise the list that the page belongs to. */

/** Pages of one thing, whose id means nothing elsewhere. Workers and tenants are the installation's. */
const ofOneThing = /^\/(jobs|runs|projects|flows|executions)\/(?!new$)[^/]+/;
/** The parameters of an address that refer to objects of this tenant. */
const ofThisTenant = ['job', 'task', 'instant', 'cursor', 'project', 'n', 'flow', 'parent', 'item', 'execution', 'key'];

/** `home` is the other tenant's first page, which ends in a slash. */
export function pageIn(home: string, path: string, search: string): string {
  const base = home.slice(0, -1);
  const list = ofOneThing.exec(path)?.[1];
  if (list !== undefined) return `${base}/${list}`;
  const kept = new URLSearchParams(search);
  for (const name of ofThisTenant) kept.delete(name);
  return `${base}${path}${kept.size > 0 ? `?${kept}` : ''}`;
}

/** Names that hold the question, those that begin with it first. */
export function findTenants<T extends { readonly name: string }>(
  tenants: readonly T[],
  question: string,
): readonly T[] {
  const q = question.trim().toLowerCase();
  const found = tenants.filter(({ name }) => name.toLowerCase().includes(q));
  const rank = ({ name }: T): number => (name.toLowerCase().startsWith(q) ? 0 : 1);
  return found.toSorted((one, other) => rank(one) - rank(other));
}
