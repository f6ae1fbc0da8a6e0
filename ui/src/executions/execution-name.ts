/** What an execution is called: by its key, or by the end of its id, because ids of the same time begin alike. */
export function nameOf({ id, key }: { readonly id: string; readonly key: string | null }): string {
  return key ?? id.slice(-8);
}
