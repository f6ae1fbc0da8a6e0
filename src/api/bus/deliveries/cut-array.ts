/** Cuts the text of a JSON array of objects, so that an answer is bounded without parsing what is behind the limit. */

const [quote, backslash, openBrace, closeBrace] = [0x22, 0x5c, 0x7b, 0x7d];

/** The array of those elements that are complete in the beginning of its text. */
export function cutArray(beginning: string): string {
  let depth = 0;
  let end = 0;
  for (let at = 1; at < beginning.length; at++) {
    const code = beginning.charCodeAt(at);
    if (code === quote) at = endOfString(beginning, at);
    else if (code === openBrace) depth++;
    else if (code === closeBrace && --depth === 0) end = at + 1;
  }
  return end === 0 ? '[]' : `${beginning.slice(0, end)}]`;
}

/** The index of the closing quote, or the end of the text. */
function endOfString(text: string, from: number): number {
  for (let at = from + 1; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === backslash) at++;
    else if (code === quote) return at;
  }
  return text.length;
}
