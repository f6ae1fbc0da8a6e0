/**
 * Splits the output of `GET /containers/{id}/logs?timestamps=1` into frames: 8 bytes of header (stream, three zeros, length),
 * then a timestamp, a blank, and the output. An engine puts a failure of its own into the stream 3.
 */
import type { StreamName } from '../contract.ts';

export interface LogFrame {
  readonly stream: StreamName | 'engine';
  /** Empty if there is none. */
  readonly stamp: string;
  readonly data: Buffer;
}

const headerBytes = 8;
/** Engines split lines at 16 KiB. */
const maxFrameBytes = 4 * 1024 * 1024;
const streams: Readonly<Record<number, LogFrame['stream']>> = { 0: 'out', 1: 'out', 2: 'err', 3: 'engine' };

export class LogFrames {
  #rest: Buffer = Buffer.alloc(0);

  /** The frames that are complete. Throws if it is not such a stream. */
  push(piece: Buffer): LogFrame[] {
    const buffer = this.#rest.length === 0 ? piece : Buffer.concat([this.#rest, piece]);
    const frames: LogFrame[] = [];
    let at = 0;
    while (buffer.length - at >= headerBytes) {
      const length = buffer.readUInt32BE(at + 4);
      const stream = streams[buffer.readUInt8(at)];
      if (stream === undefined || length > maxFrameBytes) throw new Error('the engine sent output in an unknown form');
      if (buffer.length - at - headerBytes < length) break;
      frames.push(parseFrame(stream, buffer.subarray(at + headerBytes, at + headerBytes + length)));
      at += headerBytes + length;
    }
    // copied, because a small view would keep the whole buffer alive
    this.#rest = at === buffer.length ? Buffer.alloc(0) : Buffer.from(buffer.subarray(at));
    return frames;
  }
}

const blank = 0x20;
/** The longest timestamp, `2026-01-02T03:04:05.123456789+00:00`, has 35 characters. */
const maxStampBytes = 40;

function parseFrame(stream: LogFrame['stream'], content: Buffer): LogFrame {
  if (stream === 'engine') return { stream, stamp: '', data: content };
  const end = content.subarray(0, maxStampBytes).indexOf(blank);
  // a frame without a timestamp is no output
  if (end < 0) return { stream: 'engine', stamp: '', data: content };
  return { stream, stamp: content.toString('latin1', 0, end), data: content.subarray(end + 1) };
}
