/** Which stretches of a history are read to show its newest entries. Each begins at a multiple, so that it is read once. */
export const entriesPerBlock = 100;

interface Block {
  /** Entries after this revision. */
  readonly after: number;
  /** The last revision that it had when it was read; the same for ever once it is full. */
  readonly upTo: number;
}

/** Oldest first. */
export function blocksOf(rev: number, most: number): Block[] {
  const last = Math.floor(Math.max(0, rev - 1) / entriesPerBlock);
  const first = Math.floor(Math.max(0, rev - most) / entriesPerBlock);
  return Array.from({ length: last - first + 1 }, (_, i) => {
    const after = (first + i) * entriesPerBlock;
    return { after, upTo: Math.min(rev, after + entriesPerBlock) };
  });
}
