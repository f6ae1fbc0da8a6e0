/** Quotes a text as one word of a shell command line, so that a copied command works with names that contain spaces. */
export function shellWord(text: string): string {
  return /^[\w./:@+-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
