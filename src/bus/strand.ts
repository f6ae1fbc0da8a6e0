/** Strands: ordered parts of a subscriber. An event's key decides its strand, so events of one key stay in order. */

/** `keyHash` may be negative: it is stored as a signed number of 32 bits. */
export function strandOf(keyHash: number, strands: number): number {
  return (keyHash >>> 0) % strands;
}
