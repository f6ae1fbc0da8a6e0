import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { OutputLimit } from './output-limit.ts';

function through(limitBytes: number, pieces: readonly Buffer[]): Buffer {
  const limit = new OutputLimit(limitBytes);
  const kept = pieces.flatMap((data) => limit.pass({ stream: 'out', data }));
  return Buffer.concat([...kept, ...limit.rest()].map((piece) => piece.data));
}

it('output within the limit is not changed', () => {
  expect(through(10, [Buffer.from('12345'), Buffer.from('67890')]).toString()).toBe('1234567890');
});

it('beyond the limit the beginning and the end are kept, and the bytes in between are counted', () => {
  const pieces = Array.from({ length: 1_000 }, (_, i) => Buffer.from(`${String(i).padStart(999, '.')}\n`));
  const text = through(10_000, pieces).toString();
  expect(text).toMatch(/^\.+0\n/);
  expect(text).toContain(
    '\n[millrace] the output has reached its limit of 10000 bytes; of the rest only the end is kept\n',
  );
  expect(text).toContain(`[millrace] ${1_000_000 - 10_000 - 65_536} bytes were left out here\n`);
  expect(text.endsWith('.999\n')).toBe(true);
});

it('the note appears once, even if the limit was met exactly', () => {
  const text = through(4, [Buffer.from('1234'), Buffer.from('5'), Buffer.from('6')]).toString();
  expect(text.match(/\[millrace\]/g)).toHaveLength(1);
  expect(text.endsWith('56')).toBe(true);
});

it('the kept output never exceeds limit, end and notes', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: 1_000 }),
      fc.array(fc.integer({ min: 0, max: 70_000 })),
      (limitBytes, sizes) => {
        const total = sizes.reduce((sum, size) => sum + size, 0);
        const kept = through(
          limitBytes,
          sizes.map((size) => Buffer.alloc(size, 'x')),
        );
        expect(kept.length).toBeLessThanOrEqual(limitBytes + 65_536 + 300);
        expect(kept.filter((byte) => byte === 120).length).toBeLessThanOrEqual(total + 1);
        if (total <= limitBytes) expect(kept.length).toBe(total);
      },
    ),
    { numRuns: 50 },
  );
});
