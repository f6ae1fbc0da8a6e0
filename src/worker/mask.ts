/**
 * Masks secrets in a task's output before it leaves the worker (I12): byte by byte, and also where a secret comes in two
 * pieces. What may be the beginning of a secret is held back until more comes or the stream ends.
 *
 * Every line of a secret counts as one, because a task prints them line by line, and without the newline at the end.
 * Lines shorter than four bytes are left: masking them would spoil any log and hide nothing.
 */
const shortest = 4;
const stars = Buffer.from('***');
const nothing = Buffer.alloc(0);

/** What to look for, longest first, so that a secret which contains another is masked as a whole. */
export function patternsOf(secrets: Iterable<Buffer>): Buffer[] {
  const patterns = new Map<string, Buffer>();
  for (const secret of secrets) {
    // latin1 keeps bytes as they are
    for (const line of secret.toString('latin1').split(/[\r\n]+/)) {
      const trimmed = line.trim();
      if (trimmed.length >= shortest) patterns.set(trimmed, Buffer.from(trimmed, 'latin1'));
    }
  }
  return [...patterns.values()].sort((a, b) => b.length - a.length);
}

/** Masks one stream. */
export class Mask {
  readonly #patterns: readonly Buffer[];
  #held: Buffer = nothing;

  constructor(patterns: readonly Buffer[]) {
    this.#patterns = patterns;
  }

  /** What can be let out, masked. */
  push(data: Buffer): Buffer {
    if (this.#patterns.length === 0) return data;
    const text = this.#held.length > 0 ? Buffer.concat([this.#held, data]) : data;
    const { shown, end } = replaced(text, this.#patterns, (from) => beginningOfSecret(text, from, this.#patterns));
    this.#held = Buffer.from(text.subarray(end));
    return shown;
  }

  /** The rest, at the end of the stream. */
  flush(): Buffer {
    const text = this.#held;
    this.#held = nothing;
    return replaced(text, this.#patterns, () => text.length).shown;
  }
}

/** Masks a text that is all there. */
export function maskText(text: string, patterns: readonly Buffer[]): string {
  if (patterns.length === 0) return text;
  const mask = new Mask(patterns);
  return Buffer.concat([mask.push(Buffer.from(text)), mask.flush()]).toString('utf8');
}

/** The text with its secrets masked, up to the first place that `limitAfter` says must be held back. */
function replaced(text: Buffer, patterns: readonly Buffer[], limitAfter: (from: number) => number): Shown {
  const pieces: Buffer[] = [];
  const next = patterns.map((pattern) => text.indexOf(pattern));
  let end = 0;
  let limit = limitAfter(0);
  for (;;) {
    const found = earliest(next);
    const at = next[found] ?? -1;
    const pattern = patterns[found];
    if (at < 0 || at >= limit || !pattern) {
      const rest = text.subarray(end, limit);
      return { shown: pieces.length === 0 ? rest : Buffer.concat([...pieces, rest]), end: limit };
    }
    pieces.push(text.subarray(end, at), stars);
    end = at + pattern.length;
    if (end > limit) limit = limitAfter(end);
    for (const [i, position] of next.entries()) {
      const sought = patterns[i];
      if (sought && position >= 0 && position < end) next[i] = text.indexOf(sought, end);
    }
  }
}

interface Shown {
  readonly shown: Buffer;
  /** Where what is not shown yet begins. */
  readonly end: number;
}

/** Which position comes first; of equal ones the longest pattern's, which stands before the others. */
function earliest(positions: readonly number[]): number {
  let best = -1;
  for (const [i, position] of positions.entries()) {
    if (position >= 0 && (best < 0 || position < (positions[best] ?? 0))) best = i;
  }
  return best;
}

/** The first place at or after `from` whose rest is the beginning of a secret, and not all of it; else the end. */
function beginningOfSecret(text: Buffer, from: number, patterns: readonly Buffer[]): number {
  const longest = patterns[0]?.length ?? 0;
  for (let at = Math.max(from, text.length - longest + 1); at < text.length; at++) {
    const rest = text.length - at;
    for (const pattern of patterns) {
      if (text[at] !== pattern[0] || rest >= pattern.length) continue;
      if (text.compare(pattern, 0, rest, at) === 0) return at;
    }
  }
  return text.length;
}
