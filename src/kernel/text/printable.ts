/** Text of any origin as the wire and the database take it: bounded, without NUL and without half characters. */
export function printable(text: string, maxChars: number): string {
  return text.slice(0, maxChars).toWellFormed().replaceAll('\0', '\uFFFD');
}
