/** Lines that come in pieces from a process that is not trusted. */
import { expect, it } from 'vitest';
import { LineReader } from './wire.ts';

it('a line is assembled from its pieces', () => {
  const reader = new LineReader();
  const pieces = ['{"a', '":1}\n{"b":', '2}', '\n\n'];
  expect(pieces.flatMap((piece) => reader.push(Buffer.from(piece)))).toEqual(['{"a":1}', '{"b":2}', '']);
});

it('a line of 8 MiB in pieces of a page is accepted, and a longer one is refused', () => {
  const reader = new LineReader();
  const page = Buffer.alloc(4_096, 'x');
  for (let i = 0; i < 2_048; i++) expect(reader.push(page)).toEqual([]);
  expect(reader.push(Buffer.from('\n')).map((line) => line.length)).toEqual([8 * 1024 * 1024]);
  for (let i = 0; i < 2_048; i++) reader.push(page);
  expect(() => reader.push(page)).toThrow('line too long');
});

it('a line that comes byte by byte is refused before it takes much memory', () => {
  const reader = new LineReader();
  const byte = Buffer.from('x');
  const pieces = (count: number): void => {
    for (let i = 0; i < count; i++) reader.push(byte);
  };
  expect(() => pieces(10_000)).not.toThrow();
  expect(() => pieces(10_000)).toThrow('line too long');
});
