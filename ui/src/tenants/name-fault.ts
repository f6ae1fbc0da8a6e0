/** Checks the name of a tenant, and proposes an allowed one. */

const longest = 63;

/** The fault of a tenant's name, by the server's rule (`src/gateway/tenants/endpoints.ts`), shown while the user types. */
export function nameFault(name: string): string | undefined {
  if (name === '') return 'It needs a name.';
  if (name.length > longest) return 'At most 63 characters.';
  if (!/^[a-z0-9_-]*$/.test(name)) return 'Lower-case letters, digits, - and _ only.';
  return /^[a-z0-9](.*[a-z0-9])?$/.test(name) ? undefined : 'It begins and ends with a letter or digit.';
}

/** An allowed name that is similar to one that is not. */
export function nameLike(name: string): string {
  const allowed = name.toLowerCase().replaceAll(/[^a-z0-9_-]+/g, '-');
  return allowed.slice(0, longest).replaceAll(/^[_-]+|[_-]+$/g, '') || 'tenant';
}
