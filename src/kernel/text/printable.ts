/** Makes any text acceptable for the wire and the database: of bounded length, without NUL and without lone surrogates. */
export function printable(text: string, maxChars: number): string {
  return text.slice(0, maxChars).toWellFormed().replaceAll('\0', '\uFFFD');
}
