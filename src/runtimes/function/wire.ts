/**
 * The messages between a worker and a process that calls functions: one line of JSON each, over one pipe per direction. The process
 * is not trusted, because functions can write to its pipes.
 */
import { z } from 'zod';
import type { CallFacts, RunFacts, StreamName } from '../contract.ts';

/** The descriptors of the pipes in the process. */
export const descriptors = { toWorker: 3, fromWorker: 4 } as const;

/** To a process: call this function; or stop the present call, with the reason. */
export type Order =
  | { readonly call: { readonly name: string; readonly input: unknown; readonly facts: RunFacts | CallFacts } }
  | { readonly stop: string };

/**
 * From a process: its functions are loaded (`ready`), or cannot be (`refused`); output (`print`, base64); the call has ended
 * (`end`); it must get no further calls, because of an uncaught exception (`spent`).
 */
export type HostMessage =
  /** `functions`: a JSON array of their names. */
  | { readonly ready: true; readonly functions: string }
  | { readonly refused: string }
  | { readonly print: string; readonly stream: StreamName }
  | {
      readonly end: 'success' | 'failure' | 'error';
      readonly reason: string | null;
      /** JSON text; or why there is none although the function returned a value. */
      readonly result?: string | undefined;
      readonly unkept?: string | undefined;
      /** The `code` of the error. */
      readonly code?: string | undefined;
    }
  | { readonly spent: true };

/** The maximum bytes of output in one message. */
export const printBytes = 64 * 1024;
/** Reasons are sent completely, because the worker masks secrets in them and could not recognize one that is cut. */
export const maxReasonLength = 1_000_000;
/** A reason of the maximum length, escaped, and a result. */
const maxLineBytes = 8 * 1024 * 1024;
/**
 * Pieces of a line that is not complete. A pipe passes on pages of 4 KiB, so the longest line needs 2,048. 8 MiB written byte by
 * byte took 860,000 pieces and 400 MB of memory.
 */
const maxPieces = 16_384;

const hostMessage: z.ZodType<HostMessage> = z.union([
  z.strictObject({ print: z.base64(), stream: z.enum(['out', 'err']) }),
  z.strictObject({
    end: z.enum(['success', 'failure', 'error']),
    reason: z.string().nullable(),
    result: z.string().optional(),
    unkept: z.string().optional(),
    code: z.string().optional(),
  }),
  z.strictObject({ ready: z.literal(true), functions: z.string() }),
  z.strictObject({ refused: z.string() }),
  z.strictObject({ spent: z.literal(true) }),
]);

/** Throws if the line is not a message. It takes milliseconds, whatever the line contains. */
export function parseMessage(line: string): HostMessage {
  if (!isFlat(line)) throw new Error('not a message');
  return hostMessage.parse(JSON.parse(line));
}

/** A message has five members at most, each with a name and a value. */
const maxStrings = 10;
const beforeStrings = /^\{$/;
const afterString = /^[:,}a-z]{0,8}$/;

/**
 * Whether a line of JSON can only be an object without nested values and with few members. 8 MiB of nested arrays would take
 * JSON.parse more than a second, and the worker with all its runs would stand still.
 */
function isFlat(line: string): boolean {
  let at = 0;
  for (let strings = 0; strings <= maxStrings; strings++) {
    const opens = line.indexOf('"', at);
    const between = line.slice(at, opens < 0 ? undefined : opens);
    if (!(strings === 0 ? beforeStrings : afterString).test(between)) return false;
    if (opens < 0) return true;
    at = endOfString(line, opens + 1) + 1;
    if (at === 0) return false;
  }
  return false;
}

/** The index of the quote that closes the string; -1: none does. */
function endOfString(line: string, from: number): number {
  for (let at = line.indexOf('"', from); at >= 0; at = line.indexOf('"', at + 1)) {
    let slashes = 0;
    while (at - slashes > from && line[at - slashes - 1] === '\\') slashes++;
    if (slashes % 2 === 0) return at;
  }
  return -1;
}

/** Assembles lines from pieces. */
export class LineReader {
  #parts: Buffer[] = [];
  #bytes = 0;

  /** Returns the lines that this piece completes. Throws if a line is too long, or comes in too many pieces. */
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
    if (this.#bytes > maxLineBytes || this.#parts.length >= maxPieces) throw new Error('line too long');
    if (rest.length > 0) this.#parts.push(rest);
    return lines;
  }
}
