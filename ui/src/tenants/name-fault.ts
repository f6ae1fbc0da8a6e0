/** What is wrong with a tenant's name; the server's rule (`src/gateway/tenant-endpoints.ts`), in time to be mended. */
export function nameFault(name: string): string | undefined {
  if (name === '') return 'It needs a name.';
  if (name.length > 63) return 'At most 63 characters.';
  if (!/^[a-z0-9_-]*$/.test(name)) return 'Lower-case letters, digits, - and _ only.';
  return /^[a-z0-9](.*[a-z0-9])?$/.test(name) ? undefined : 'It begins and ends with a letter or digit.';
}
