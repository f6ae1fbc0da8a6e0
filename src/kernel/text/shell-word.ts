/** A text as one word of a shell's command line: names may hold spaces, and a command that is copied must still work. */
export function shellWord(text: string): string {
  return /^[\w./:@+-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
