/**
 * Limits a run's output: its beginning is kept up to the limit, and its last 64 KiB, because the reason of a failure is at the
 * end. A line between them says how much is missing. The task itself is not affected.
 */
import type { StreamName } from '../../runtimes/contract.ts';

export interface Piece {
  readonly stream: StreamName;
  readonly data: Buffer;
}

const tailBytes = 64 * 1024;

export class OutputLimit {
  readonly #limitBytes: number;
  #passedBytes = 0;
  #reached = false;
  #omittedBytes = 0;
  readonly #tail: Piece[] = [];
  #tailBytes = 0;

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes;
  }

  /** The parts of this piece that are kept now. */
  pass(piece: Piece): Piece[] {
    const room = this.#limitBytes - this.#passedBytes;
    if (piece.data.length <= room) {
      this.#passedBytes += piece.data.length;
      return [piece];
    }
    this.#passedBytes = this.#limitBytes;
    this.#remember({ stream: piece.stream, data: piece.data.subarray(room) });
    if (this.#reached) return [];
    this.#reached = true;
    const line = `\n[millrace] the output has reached its limit of ${this.#limitBytes} bytes; of the rest only the end is kept\n`;
    return [{ stream: piece.stream, data: piece.data.subarray(0, room) }, note(line)];
  }

  /** The end of the output that is kept. */
  rest(): Piece[] {
    const kept = this.#tail.splice(0);
    return this.#omittedBytes > 0
      ? [note(`[millrace] ${this.#omittedBytes} bytes were left out here\n`), ...kept]
      : kept;
  }

  #remember({ stream, data }: Piece): void {
    const end = data.subarray(Math.max(0, data.length - tailBytes));
    this.#omittedBytes += data.length - end.length;
    this.#tailBytes += end.length;
    const last = this.#tail.at(-1);
    // small pieces are joined and copied, because a small view may keep a large buffer alive
    const joins = last?.stream === stream && last.data.length + end.length <= 4_096;
    const joined = joins ? Buffer.concat([last.data, end]) : Buffer.from(end);
    this.#tail.splice(joins ? -1 : this.#tail.length, joins ? 1 : 0, { stream, data: joined });
    while (this.#tailBytes > tailBytes) this.#forget(this.#tailBytes - tailBytes);
  }

  #forget(bytes: number): void {
    const first = this.#tail.shift();
    if (!first) return;
    const cut = Math.min(bytes, first.data.length);
    this.#tailBytes -= cut;
    this.#omittedBytes += cut;
    if (cut < first.data.length) this.#tail.unshift({ stream: first.stream, data: first.data.subarray(cut) });
  }
}

function note(line: string): Piece {
  return { stream: 'err', data: Buffer.from(line) };
}
