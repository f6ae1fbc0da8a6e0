/**
 * The messages between a worker and a process that calls functions: one line of JSON each, over one pipe per direction. The process
 * is not trusted, because functions can write to its pipes.
 */
import type { RunFacts, StreamName } from '../contract.ts';

/** The descriptors of the pipes in the process. */
export const descriptors = { toWorker: 3, fromWorker: 4 } as const;

/** To a process: call this function; or stop the present call, with the reason. */
export type Order =
  | { readonly call: { readonly name: string; readonly input: unknown; readonly facts: RunFacts } }
  | { readonly stop: string };

/**
 * From a process: its functions are loaded (`ready`), or cannot be (`refused`); output (`print`, base64); the call has ended
 * (`end`); it must get no further calls, because of an uncaught exception (`spent`).
 */
export type HostMessage =
  | { readonly ready: readonly string[] }
  | { readonly refused: string }
  | { readonly print: string; readonly stream: StreamName }
  | {
      readonly end: 'success' | 'failure' | 'error';
      readonly reason: string | null;
      /** JSON text; or why there is none although the function returned a value. */
      readonly result?: string | undefined;
      readonly unkept?: string | undefined;
    }
  | { readonly spent: true };

/** The maximum bytes of output in one message. */
export const printBytes = 64 * 1024;
const maxLineBytes = 16 * 1024 * 1024;

/** Assembles lines from pieces. */
export class LineReader {
  #parts: Buffer[] = [];
  #bytes = 0;

  /** Returns the lines that this piece completes. Throws if a line is too long. */
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
    if (this.#bytes > maxLineBytes) throw new Error('line too long');
    if (rest.length > 0) this.#parts.push(rest);
    return lines;
  }
}
