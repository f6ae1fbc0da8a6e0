/**
 * Repeatable randomness: every choice of a simulation comes from a generator that is seeded by a text, so the same text
 * gives the same choices. Streams with different texts are independent of each other.
 */

export class Random {
  readonly #state: Uint32Array;

  constructor(seed: string) {
    this.#state = Uint32Array.from([hash(seed, 1), hash(seed, 2), hash(seed, 3), 1]);
    for (let i = 0; i < 12; i++) this.#draw();
  }

  /** From 0 (inclusive) to 1 (exclusive). */
  next(): number {
    return this.#draw() / 2 ** 32;
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  /** Both bounds are inclusive. */
  int(min: number, max: number): number {
    return min + Math.floor(this.next() * (max - min + 1));
  }

  pick<T>(items: readonly T[]): T {
    if (items.length === 0) throw new Error('cannot pick from an empty list');
    return items[this.int(0, items.length - 1)] as T;
  }

  /** Picks an item, or returns undefined if there is none. */
  maybe<T>(items: readonly T[]): T | undefined {
    return items.length === 0 ? undefined : this.pick(items);
  }

  /** Picks a key with a probability proportional to its weight. */
  weighted<K extends string>(weights: Readonly<Record<K, number>>): K {
    const entries = Object.entries<number>(weights) as [K, number][];
    let left = this.next() * entries.reduce((sum, [, weight]) => sum + weight, 0);
    for (const [key, weight] of entries) {
      left -= weight;
      if (left < 0) return key;
    }
    throw new Error('the weights add up to 0');
  }

  /** sfc32: small, fast, and passes the usual tests of randomness. */
  #draw(): number {
    const [a = 0, b = 0, c = 0, counter = 0] = this.#state;
    const result = (a + b + counter) >>> 0;
    this.#state.set([b ^ (b >>> 9), c + (c << 3), ((c << 21) | (c >>> 11)) + result, counter + 1]);
    return result;
  }
}

/** FNV-1a over the text, with a different start value for each number. */
function hash(text: string, number: number): number {
  let value = 0x811c9dc5 ^ Math.imul(number, 0x9e3779b1);
  for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 0x01000193);
  return value >>> 0;
}
