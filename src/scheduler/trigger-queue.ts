/** A priority queue of triggers by the time they are due. Each trigger is in it at most once. */

export interface Due<T> {
  readonly id: string;
  /** When it fires: instant + offset. */
  readonly dueMs: number;
  readonly instantMs: number;
  readonly trigger: T;
}

/** So many stale entries are borne whatever the size. */
const slack = 1_000;
/** Who only wants to see the first ones looks at no more entries than this. */
const mostSeen = 1_000;

export class TriggerQueue<T> {
  readonly #heap: Due<T>[] = [];
  /** The entry that counts for each trigger: others left in the heap are stale and skipped when they surface. */
  readonly #current = new Map<string, Due<T>>();

  get size(): number {
    return this.#current.size;
  }

  /** Entries held, stale ones included. */
  get held(): number {
    return this.#heap.length;
  }

  push(due: Due<T>): void {
    this.#current.set(due.id, due);
    this.#heap.push(due);
    this.#rise(this.#heap.length - 1);
    if (this.#heap.length > 2 * this.#current.size + slack) this.#compact();
  }

  remove(id: string): void {
    this.#current.delete(id);
  }

  /** Triggers that are edited again and again leave stale entries, whose time may never come. */
  #compact(): void {
    this.#heap.length = 0;
    for (const due of this.#current.values()) {
      this.#heap.push(due);
      this.#rise(this.#heap.length - 1);
    }
  }

  peek(): Due<T> | undefined {
    let head = this.#heap[0];
    while (head !== undefined && this.#current.get(head.id) !== head) {
      this.#dropHead();
      head = this.#heap[0];
    }
    return head;
  }

  /** Takes out everything due by then, at most `max`, earliest first. */
  popDue(nowMs: number, max: number): Due<T>[] {
    const due: Due<T>[] = [];
    for (let head = this.peek(); head !== undefined && head.dueMs <= nowMs && due.length < max; head = this.peek()) {
      this.#dropHead();
      this.#current.delete(head.id);
      due.push(head);
    }
    return due;
  }

  /** The first `most`, earliest first, left where they are. Fewer where very many stale entries stand before them. */
  first(most: number): Due<T>[] {
    const found: Due<T>[] = [];
    const edge = this.#heap.length > 0 ? [0] : [];
    for (let seen = 0; found.length < most && seen < mostSeen; seen++) {
      const at = this.#takeEarliest(edge);
      const due = at === undefined ? undefined : this.#heap[at];
      if (at === undefined || due === undefined) break;
      if (this.#current.get(due.id) === due) found.push(due);
      for (const below of [2 * at + 1, 2 * at + 2]) if (below < this.#heap.length) edge.push(below);
    }
    return found;
  }

  /** Of these places in the heap: takes out the one that is due first. */
  #takeEarliest(places: number[]): number | undefined {
    let earliest = 0;
    for (let i = 1; i < places.length; i++) {
      if (this.#dueAt(places[i] ?? 0) < this.#dueAt(places[earliest] ?? 0)) earliest = i;
    }
    const [taken] = places.splice(earliest, 1);
    return taken;
  }

  values(): IterableIterator<Due<T>> {
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
