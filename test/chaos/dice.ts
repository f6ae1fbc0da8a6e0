/** Repeatable randomness: the same seed gives the same throws. */
export interface Dice {
  /** Picks one item; all are equally likely. */
  next<T>(items: readonly T[]): T;
  /** Returns all items in random order. */
  shuffle<T>(items: readonly T[]): T[];
  /** A whole number from 0 to n - 1. */
  upTo(n: number): number;
}

export function makeDice(seed: number): Dice {
  let state = seed >>> 0;
  /** mulberry32. */
  const throwOnce = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const upTo = (n: number): number => Math.floor(throwOnce() * n);
  return {
    shuffle: (items) =>
      items
        .map((item) => ({ item, at: throwOnce() }))
        .sort((a, b) => a.at - b.at)
        .map(({ item }) => item),
    upTo,
    next<T>(items: readonly T[]): T {
      const item = items[upTo(items.length)];
      if (item === undefined) throw new Error('cannot pick from an empty list');
      return item;
    },
  };
}
