import { array, assert, constantFrom, nat, property, record, uint8Array } from 'fast-check';
import { expect, it } from 'vitest';
import { LogFrames } from './log-frames.ts';

function frame(stream: number, text: string | Buffer): Buffer {
  const content = Buffer.from(text);
  const header = Buffer.alloc(8);
  header.writeUInt8(stream, 0);
  header.writeUInt32BE(content.length, 4);
  return Buffer.concat([header, content]);
}

const stamp = '2026-01-02T03:04:05.123456789Z';

it('frames are found wherever the network has cut them', () => {
  const line = record({ stream: constantFrom(1, 2), data: uint8Array({ maxLength: 50 }) });
  assert(
    property(array(line, { maxLength: 20 }), array(nat(200), { maxLength: 30 }), (lines, cuts) => {
      const whole = Buffer.concat(
        lines.map(({ stream, data }) => frame(stream, Buffer.concat([Buffer.from(`${stamp} `), data]))),
      );
      const frames = new LogFrames();
      const ends = [...cuts.map((cut) => Math.min(cut, whole.length)).toSorted((a, b) => a - b), whole.length];
      const found = ends.flatMap((end, index) => frames.push(whole.subarray(ends[index - 1] ?? 0, end)));
      expect(found.map(({ stream, stamp: at, data }) => [stream, at, [...data]])).toEqual(
        lines.map(({ stream, data }) => [stream === 1 ? 'out' : 'err', stamp, [...data]]),
      );
    }),
  );
});

it('a failure of the engine, and a frame without a timestamp, are no output', () => {
  const frames = new LogFrames();
  expect(frames.push(frame(3, 'Error grabbing logs'))).toMatchObject([{ stream: 'engine' }]);
  expect(frames.push(frame(1, 'unable-to-retrieve'))).toMatchObject([{ stream: 'engine' }]);
});

it('what is not a stream of frames is rejected', () => {
  expect(() => new LogFrames().push(Buffer.from('HTTP/1.1 200 OK\r\n'))).toThrow('unknown form');
  expect(() => new LogFrames().push(Buffer.from([1, 0, 0, 0, 255, 255, 255, 255]))).toThrow('unknown form');
});
