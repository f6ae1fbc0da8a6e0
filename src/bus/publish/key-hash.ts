/** The hash that assigns an event to a strand: events of one ordering key, or of one URL, stay in order. */

const offset = 0x811c9dc5;
const prime = 0x01000193;

/** 32-bit FNV-1a of the UTF-8 bytes, as a signed integer. */
export function keyHash(text: string): number {
  let hash = offset;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code > 0x7f) return hashBytes(Buffer.from(text));
    hash = Math.imul(hash ^ code, prime);
  }
  return hash | 0;
}

function hashBytes(bytes: Uint8Array): number {
  let hash = offset;
  for (const byte of bytes) hash = Math.imul(hash ^ byte, prime);
  return hash | 0;
}
