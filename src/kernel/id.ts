/** Ids: UUID version 7, so that newer ids sort after older ones and neighbouring rows share index pages. */
import { randomUUID } from 'node:crypto';

let lastMs = 0;
let counter = 0;

/** A new id. Ids that one process creates in the same millisecond still sort in the order of creation. */
export function newId(nowMs: number = Date.now()): string {
  if (nowMs > lastMs) {
    lastMs = nowMs;
    counter = 0;
  } else if (++counter > 0xfff) {
    lastMs += 1;
    counter = 0;
  }
  const time = lastMs.toString(16).padStart(12, '0');
  // the variant and 62 bits of chance, of which Node keeps a stock
  const chance = randomUUID().slice(18);
  return `${time.slice(0, 8)}-${time.slice(8)}-${(0x7000 | counter).toString(16)}${chance}`;
}

/** The id that no object has. */
export const nilId = '00000000-0000-0000-0000-000000000000';

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

export function isId(text: string): boolean {
  return uuid.test(text);
}
