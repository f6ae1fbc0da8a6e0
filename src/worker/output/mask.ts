/**
 * Masks secrets in a task's output before it leaves the worker (I12): byte by byte, even if a secret arrives in two pieces.
 * Bytes that may be the beginning of a secret are held back until more arrive or the stream ends. Secrets that overlap in the
 * output are masked together.
 *
 * Every line of a secret counts as a secret, because a task may print them line by line, and without the last newline. Lines
 * shorter than four bytes are not masked: masking them would spoil any log and hide nothing.
 *
 * The time is linear in the output, for any number of secrets: an Aho-Corasick automaton reads each byte once. A separate search
 * for each secret took quadratic time for output that nearly matches.
 */
const minLineBytes = 4;
const stars = Buffer.from('***');
const nothing = Buffer.alloc(0);

/** The lines of all secrets that are long enough, each once. */
function linesOf(secrets: Iterable<Buffer>): Buffer[] {
  const lines = new Set<string>();
  for (const secret of secrets) {
    // latin1 preserves the bytes
    for (const line of secret.toString('latin1').split(/[\r\n]+/)) {
      const trimmed = line.trim();
      if (trimmed.length >= minLineBytes) lines.add(trimmed);
    }
  }
  return Array.from(lines, (line) => Buffer.from(line, 'latin1'));
}

/**
 * The automaton. A state represents the beginning of some line; state 0 is the empty one. States form a tree (`child`,
 * `sibling`), and `fail` points to the longest other beginning that is a suffix of the state.
 */
export class SecretLines {
  readonly isEmpty: boolean;
  /** For each byte, whether a line begins with it. */
  readonly starts = new Uint8Array(256);
  /** The length of the beginning that a state represents. */
  readonly depth: Int32Array;
  /** The length of the longest line that a state ends with; 0: none. */
  readonly match: Int32Array;
  readonly #byte: Uint8Array;
  readonly #child: Int32Array;
  readonly #sibling: Int32Array;
  readonly #fail: Int32Array;

  constructor(secrets: Iterable<Buffer>) {
    const lines = linesOf(secrets);
    for (const [first = 0] of lines) this.starts[first] = 1;
    const size = 1 + lines.reduce((sum, line) => sum + line.length, 0);
    this.isEmpty = lines.length === 0;
    this.depth = new Int32Array(size);
    this.match = new Int32Array(size);
    this.#byte = new Uint8Array(size);
    this.#child = new Int32Array(size);
    this.#sibling = new Int32Array(size);
    this.#fail = new Int32Array(size);
    this.#link(this.#plant(lines));
  }

  /** The state after one more byte. */
  next(state: number, byte: number): number {
    for (let at = state; ; at = this.#fail[at] ?? 0) {
      const child = this.#find(at, byte);
      if (child !== 0 || at === 0) return child;
    }
  }

  #find(state: number, byte: number): number {
    let child = this.#child[state] ?? 0;
    while (child !== 0 && this.#byte[child] !== byte) child = this.#sibling[child] ?? 0;
    return child;
  }

  /** Builds the tree. Returns the number of states. */
  #plant(lines: readonly Buffer[]): number {
    let states = 1;
    for (const line of lines) {
      let at = 0;
      for (const byte of line) {
        let child = this.#find(at, byte);
        if (child === 0) {
          child = states++;
          this.#byte[child] = byte;
          this.depth[child] = (this.depth[at] ?? 0) + 1;
          this.#sibling[child] = this.#child[at] ?? 0;
          this.#child[at] = child;
        }
        at = child;
      }
      this.match[at] = line.length;
    }
    return states;
  }

  /** Sets `fail`, level by level, because it points upwards. */
  #link(states: number): void {
    const queue = new Int32Array(states);
    let end = 1;
    for (let i = 0; i < end; i++) {
      const at = queue[i] ?? 0;
      for (let child = this.#child[at] ?? 0; child !== 0; child = this.#sibling[child] ?? 0) {
        const fail = at === 0 ? 0 : this.next(this.#fail[at] ?? 0, this.#byte[child] ?? 0);
        this.#fail[child] = fail;
        this.match[child] = Math.max(this.match[child] ?? 0, this.match[fail] ?? 0);
        queue[end++] = child;
      }
    }
  }
}

/** A stretch of the stream, in bytes since its beginning. */
interface Stretch {
  readonly from: number;
  readonly to: number;
}

/** Masks one stream. */
export class Mask {
  readonly #secrets: SecretLines;
  #state = 0;
  /** The numbers of bytes that were read, and that were shown or masked. */
  #read = 0;
  #done = 0;
  /** The bytes in between, as they arrived. */
  #held: Buffer[] = [];
  /** Found secrets that are not masked yet, in order, without overlaps. */
  #found: Stretch[] = [];

  constructor(secrets: SecretLines) {
    this.#secrets = secrets;
  }

  /** Returns the masked bytes that can be shown now. */
  push(data: Buffer): Buffer {
    if (this.#secrets.isEmpty) return data;
    this.#search(data);
    this.#held.push(data);
    const shown = this.#showUpTo(this.#read - (this.#secrets.depth[this.#state] ?? 0));
    // copied, because its memory belongs to the caller
    const last = this.#held.pop();
    if (last !== undefined) this.#held.push(Buffer.from(last));
    return shown;
  }

  /** The rest, at the end of the stream. */
  flush(): Buffer {
    this.#state = 0;
    return this.#showUpTo(this.#read);
  }

  /** Most bytes begin no secret, and only cost a lookup in a table. */
  #search(data: Buffer): void {
    const { starts, match } = this.#secrets;
    let state = this.#state;
    for (let i = 0; i < data.length; i++) {
      const byte = data[i] ?? 0;
      if (state === 0 && starts[byte] === 0) continue;
      state = this.#secrets.next(state, byte);
      const length = match[state] ?? 0;
      if (length > 0) this.#note(this.#read + i + 1 - length, this.#read + i + 1);
    }
    this.#state = state;
    this.#read += data.length;
  }

  /** A secret begins at `start` and ends before `to`. */
  #note(start: number, to: number): void {
    let from = start;
    for (let last = this.#found.at(-1); last !== undefined && last.to > from; last = this.#found.at(-1)) {
      from = Math.min(from, last.from);
      this.#found.pop();
    }
    this.#found.push({ from, to });
  }

  /** Shows and masks bytes up to `limit`. No secret that is found later begins before it. */
  #showUpTo(limit: number): Buffer {
    const pieces: Buffer[] = [];
    let masked = 0;
    for (const { from, to } of this.#found) {
      if (from >= limit) break;
      masked++;
      // a secret that overlaps masked bytes only extends them
      if (from >= this.#done) pieces.push(...this.#take(from - this.#done), stars);
      this.#take(to - this.#done);
    }
    this.#found.splice(0, masked);
    if (limit > this.#done) pieces.push(...this.#take(limit - this.#done));
    return pieces.length === 1 ? (pieces[0] ?? nothing) : Buffer.concat(pieces);
  }

  /** Removes this many of the held bytes. */
  #take(count: number): Buffer[] {
    const taken: Buffer[] = [];
    let left = Math.max(0, count);
    this.#done += left;
    let whole = 0;
    for (const piece of this.#held) {
      if (piece.length > left) break;
      taken.push(piece);
      left -= piece.length;
      whole++;
    }
    this.#held.splice(0, whole);
    const [first] = this.#held;
    if (left > 0 && first !== undefined) {
      taken.push(first.subarray(0, left));
      this.#held[0] = first.subarray(left);
    }
    return taken;
  }
}

/** Masks a complete text. */
export function maskText(text: string, secrets: SecretLines): string {
  if (secrets.isEmpty) return text;
  const mask = new Mask(secrets);
  return Buffer.concat([mask.push(Buffer.from(text)), mask.flush()]).toString('utf8');
}
