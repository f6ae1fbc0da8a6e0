/** A priority queue by the time at which entries are due. Each id is in it at most once: the last entry counts. */

interface Due {
  readonly id: string;
  readonly dueMs: number;
}

/** Stale entries that are tolerated whatever the size. */
const maxStale = 1_000;
/** Maximum number of entries that `first` reads. */
const maxRead = 1_000;

export class DueQueue<T extends Due> {
  readonly #heap: T[] = [];
  /** The valid entry of each id. Other entries in the heap are stale, and skipped when they reach the top. */
  readonly #current = new Map<string, T>();

  get size(): number {
    return this.#current.size;
  }

  /** Entries held, stale ones included. */
  get held(): number {
    return this.#heap.length;
  }

  push(due: T): void {
    this.#current.set(due.id, due);
    this.#heap.push(due);
    this.#rise(this.#heap.length - 1);
    if (this.#heap.length > 2 * this.#current.size + maxStale) this.#compact();
  }

  get(id: string): T | undefined {
    return this.#current.get(id);
  }

  remove(id: string): void {
    this.#current.delete(id);
  }

  /** Removes stale entries: those of an id that is pushed repeatedly might never reach the top. */
  #compact(): void {
    this.#heap.length = 0;
    for (const due of this.#current.values()) {
      this.#heap.push(due);
      this.#rise(this.#heap.length - 1);
    }
  }

  peek(): T | undefined {
    let head = this.#heap[0];
    while (head !== undefined && this.#current.get(head.id) !== head) {
      this.#dropHead();
      head = this.#heap[0];
    }
    return head;
  }

  /** Removes and returns at most `max` entries that are due by then, earliest first. */
  popDue(nowMs: number, max: number): T[] {
    const due: T[] = [];
    for (let head = this.peek(); head !== undefined && head.dueMs <= nowMs && due.length < max; head = this.peek()) {
      this.#dropHead();
      this.#current.delete(head.id);
      due.push(head);
    }
    return due;
  }

  /** Returns the `most` earliest entries without removing them; fewer if very many stale entries come before them. */
  first(most: number): T[] {
    const found: T[] = [];
    const edge = this.#heap.length > 0 ? [0] : [];
    for (let seen = 0; found.length < most && seen < maxRead; seen++) {
      const at = this.#takeEarliest(edge);
      const due = at === undefined ? undefined : this.#heap[at];
      if (at === undefined || due === undefined) break;
      if (this.#current.get(due.id) === due) found.push(due);
      for (const below of [2 * at + 1, 2 * at + 2]) if (below < this.#heap.length) edge.push(below);
    }
    return found;
  }

  /** Removes from these places in the heap the one that is due first, and returns it. */
  #takeEarliest(places: number[]): number | undefined {
    let earliest = 0;
    for (let i = 1; i < places.length; i++) {
      if (this.#dueAt(places[i] ?? 0) < this.#dueAt(places[earliest] ?? 0)) earliest = i;
    }
    const [taken] = places.splice(earliest, 1);
    return taken;
  }

  values(): IterableIterator<T> {
    return this.#current.values();
  }

  #dropHead(): void {
    const last = this.#heap.pop();
    if (last === undefined || this.#heap.length === 0) return;
    this.#heap[0] = last;
    this.#sink(0);
  }

  #rise(start: number): void {
    let at = start;
    while (at > 0) {
      const above = (at - 1) >> 1;
      if (this.#dueAt(above) <= this.#dueAt(at)) return;
      this.#swap(at, above);
      at = above;
    }
  }

  #sink(start: number): void {
    let at = start;
    for (;;) {
      const left = 2 * at + 1;
      const smaller = this.#dueAt(left + 1) < this.#dueAt(left) ? left + 1 : left;
      if (this.#dueAt(at) <= this.#dueAt(smaller)) return;
      this.#swap(at, smaller);
      at = smaller;
    }
  }

  #dueAt(index: number): number {
    return this.#heap[index]?.dueMs ?? Number.POSITIVE_INFINITY;
  }

  #swap(a: number, b: number): void {
    const [x, y] = [this.#heap[a], this.#heap[b]];
    if (x === undefined || y === undefined) return;
    this.#heap[a] = y;
    this.#heap[b] = x;
  }
}
