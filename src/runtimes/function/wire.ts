/**
 * What a worker and a process that calls functions say to each other: JSON, a line each, over one pipe for each
 * direction. The process is not trusted: whoever writes functions can write to its pipes.
 */
import type { RunFacts, StreamName } from '../contract.ts';

/** The descriptors that a process finds its pipes at. */
export const descriptors = { toWorker: 3, fromWorker: 4 } as const;

/** To a process: call this function; or, what is being called is to end, and why. */
export type Order =
  | { readonly call: { readonly name: string; readonly input: unknown; readonly facts: RunFacts } }
  | { readonly stop: string };

/**
 * From a process: its functions are loaded, or cannot be; something was printed (base64); the call has ended; no further
 * calls should come, because an exception was caught by nobody.
 */
export type Word =
  | { readonly ready: readonly string[] }
  | { readonly refused: string }
  | { readonly print: string; readonly stream: StreamName }
  | {
      readonly end: 'success' | 'failure' | 'error';
      readonly reason: string | null;
      /** JSON text, or why there is none though the function returned something. */
      readonly result?: string | undefined;
      readonly unkept?: string | undefined;
    }
  | { readonly spent: true };

/** What is printed is cut into pieces of this. */
export const printBytes = 64 * 1024;
const longestLine = 16 * 1024 * 1024;

/** Puts lines together from pieces as they come. */
export class LineReader {
  #parts: Buffer[] = [];
  #bytes = 0;

  /** The lines that this piece completes. Throws when one has no end. */
  push(piece: Buffer): string[] {
    const lines: string[] = [];
    let from = 0;
    for (let at = piece.indexOf(10); at >= 0; at = piece.indexOf(10, from)) {
      lines.push(Buffer.concat([...this.#parts.splice(0), piece.subarray(from, at)]).toString('utf8'));
      this.#bytes = 0;
      from = at + 1;
    }
    const rest = piece.subarray(from);
    this.#bytes += rest.length;
    if (this.#bytes > longestLine) throw new Error('a line without an end');
    if (rest.length > 0) this.#parts.push(rest);
    return lines;
  }
}
