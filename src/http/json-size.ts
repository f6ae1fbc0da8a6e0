/**
 * Measures a JSON text before it is parsed: 12 MB of `[[[[…` are parsed into 6 million arrays, which takes seconds, and a
 * scan of the same bytes takes 20 ms. Whether the text is JSON at all is left to the parser.
 */
import { MillraceError } from '../errors.ts';

export const maxJsonDepth = 200;
/** The heartbeat of a worker that holds 25,000 runs has 175,000. */
const maxValues = 200_000;
/** Of one object. 60,000 keys took 150 to 300 ms to parse and check, several times as long as 60,000 items of a list. */
const maxKeys = 10_000;

const [quote, backslash, comma, colon] = [0x22, 0x5c, 0x2c, 0x3a];
const [openBrace, closeBrace, openBracket, closeBracket] = [0x7b, 0x7d, 0x5b, 0x5d];

/** How many values the text has, or a few more; throws where they are too many or too deep. */
export function countJsonValues(bytes: Uint8Array): number {
  let values = 1;
  let depth = 0;
  let isInString = false;
  /** Keys so far of the object that is open at each depth. */
  const keys = new Uint32Array(maxJsonDepth + 1);
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i];
    if (isInString) {
      if (byte === backslash) i++;
      else if (byte === quote) isInString = false;
    } else if (byte === quote) isInString = true;
    else if (byte === comma) values++;
    else if (byte === colon) {
      values++;
      const fields = (keys[depth] ?? 0) + 1;
      if (fields > maxKeys) throw refused(`an object has more than ${maxKeys} fields`);
      keys[depth] = fields;
    } else if (byte === openBrace || byte === openBracket) {
      values++;
      if (++depth > maxJsonDepth) throw refused(`nested more than ${maxJsonDepth} deep`);
      keys[depth] = 0;
    } else if (byte === closeBrace || byte === closeBracket) depth--;
  }
  if (values > maxValues) throw refused(`more than ${maxValues} values`);
  return values;
}

function refused(message: string): MillraceError {
  return new MillraceError('bad_request', `body: ${message}`, { faults: [{ path: 'body', message }] });
}
