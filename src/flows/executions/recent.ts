/** Values that were used lately, bounded by their sizes together. The newest one is kept whatever its size. */
export class Recent<Key, Value> {
  /** The one that was not used for the longest time is first. */
  readonly #kept = new Map<Key, { readonly value: Value; readonly size: number }>();
  readonly #maxSize: number;
  #size = 0;
  #newest: Key | undefined;

  constructor(maxSize: number) {
    this.#maxSize = maxSize;
  }

  get(key: Key): Value | undefined {
    const found = this.#kept.get(key);
    if (found === undefined || key === this.#newest) return found?.value;
    this.#kept.delete(key);
    this.#kept.set(key, found);
    this.#newest = key;
    return found.value;
  }

  keep(key: Key, value: Value, size: number): Value {
    this.#drop(key);
    for (const oldest of this.#kept.keys()) {
      if (this.#size + size <= this.#maxSize) break;
      this.#drop(oldest);
    }
    this.#kept.set(key, { value, size });
    this.#size += size;
    this.#newest = key;
    return value;
  }

  #drop(key: Key): void {
    this.#size -= this.#kept.get(key)?.size ?? 0;
    this.#kept.delete(key);
  }
}
