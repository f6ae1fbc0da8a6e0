/** What a tenant may be called, and what it may be called instead. */

const longest = 63;

/** What is wrong with a tenant's name; the server's rule (`src/gateway/tenants/endpoints.ts`), in time to be mended. */
export function nameFault(name: string): string | undefined {
  if (name === '') return 'It needs a name.';
  if (name.length > longest) return 'At most 63 characters.';
  if (!/^[a-z0-9_-]*$/.test(name)) return 'Lower-case letters, digits, - and _ only.';
  return /^[a-z0-9](.*[a-z0-9])?$/.test(name) ? undefined : 'It begins and ends with a letter or digit.';
}

/** A name that may be given, like one that may not. */
export function nameLike(name: string): string {
  const allowed = name.toLowerCase().replaceAll(/[^a-z0-9_-]+/g, '-');
  return allowed.slice(0, longest).replaceAll(/^[_-]+|[_-]+$/g, '') || 'tenant';
}
