import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { textWith } from '../../../test/harness/expected.ts';
import { readTarball } from './tarball.ts';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'millrace-tarball-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

const long = `package/dist/${'a-long-name/'.repeat(20)}end.js`;
const umlauts = 'package/dist/ünïcode — 漢字.js';
const big = Buffer.from('0123456789'.repeat(10_000));

/** A tarball of the real `tar` command. */
function packed(format: string, options: readonly string[] = []): Buffer {
  const [from, file] = [join(folder, format), join(folder, `${format}.tar`)];
  for (const [path, data] of [
    ['package/package.json', '{}'],
    [long, 'long'],
    [umlauts, 'ü'],
    ['package/big', big],
  ] as const) {
    mkdirSync(dirname(join(from, path)), { recursive: true });
    writeFileSync(join(from, path), data);
  }
  execFileSync('tar', [`--format=${format}`, ...options, '-cf', file, '-C', from, 'package']);
  return readFileSync(file);
}

/** One entry, which may be malicious. */
function entry(path: string, type: string, data = '', size = octal(data.length)): Buffer {
  const header = Buffer.alloc(512);
  header.write(path, 0);
  header.write('0000644\0', 100);
  header.set(size, 124);
  header.write(' '.repeat(8), 148);
  header.write(type, 156);
  header.write('ustar\u000000', 257);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  const padded = Buffer.alloc(Math.ceil(data.length / 512) * 512);
  padded.write(data);
  return Buffer.concat([header, padded]);
}
const octal = (size: number): Buffer => Buffer.from(`${size.toString(8).padStart(11, '0')}\0`);
const end = Buffer.alloc(1024);

describe('tarball', () => {
  it.each(['pax', 'gnu'])('a tarball of the format %s is read, with long names, gzipped or not', async (format) => {
    const bytes = packed(format);
    for (const form of [bytes, gzipSync(bytes)]) {
      const files = new Map((await readTarball(form)).map(({ path, data }) => [path, data.toString()]));
      expect(files).toEqual(
        new Map([
          ['package/package.json', '{}'],
          [long, 'long'],
          [umlauts, 'ü'],
          ['package/big', big.toString()],
        ]),
      );
    }
  });

  it.each([
    ['an absolute path', entry('/etc/passwd', '0', 'x'), 'leads out of the folder'],
    ['a path upwards', entry('package/../../x', '0', 'x'), 'leads out of the folder'],
    ['a path upwards in a long name', Buffer.concat([entry('x', 'L', '../../y\0'), entry('x', '0', 'x')]), 'leads out'],
    ['the same in a pax header', Buffer.concat([entry('x', 'x', '16 path=../../y\n'), entry('x', '0')]), 'leads out'],
    ['no name', entry('', '0', 'x'), 'leads out'],
    ['a symbolic link', entry('package/x', '2'), 'is a link or a device'],
    ['a hard link', entry('package/x', '1'), 'is a link or a device'],
    ['a device', entry('package/x', '3'), 'is a link or a device'],
  ])('a tarball with %s is refused', async (_, bytes, words) => {
    await expect(readTarball(Buffer.concat([bytes, end]))).rejects.toMatchObject({
      code: 'bad_request',
      message: textWith(words),
    });
  });

  it.each([
    ['below zero', Buffer.from('-0000001000\0')],
    ['below zero, in bytes', Buffer.alloc(12, 0xff)],
    ['that is not a number', Buffer.from('00000000x00\0')],
    ['that is not octal', Buffer.from('00000000008\0')],
    ['that is too large', Buffer.from([0x80, ...Buffer.alloc(11, 0xff)])],
  ])('a tarball with a size %s is refused, and read no further', async (_, size) => {
    const bytes = Buffer.concat([entry('package/x', '0', '', size), entry('package/y', '0', 'y'), end]);
    await expect(readTarball(bytes)).rejects.toMatchObject({
      code: 'bad_request',
      message: 'the size of "package/x" in it is not a number',
    });
  });

  it.each(['13 size=-512\n', '11 size=x2\n', '8 size=\n', '13 size=0x10\n', '13 size=0.25\n'])(
    'a tarball with a pax header of %j is refused',
    async (record) => {
      const bytes = Buffer.concat([entry('x', 'x', record), entry('package/x', '0', 'x'), end]);
      await expect(readTarball(bytes)).rejects.toMatchObject({ message: textWith('is not a number') });
    },
  );

  it('data that are cut off, damaged or not a tarball are refused', async () => {
    const whole = packed('pax');
    const refused = { code: 'bad_request' };
    await expect(readTarball(whole.subarray(0, whole.length / 2))).rejects.toMatchObject(refused);
    await expect(readTarball(gzipSync(whole).subarray(0, 1_000))).rejects.toMatchObject(refused);
    await expect(readTarball(Buffer.from('PK no tarball '.repeat(100)))).rejects.toMatchObject({
      message: 'it is not a tarball, or a damaged one',
    });
    for (const record of ['999999 path=y\n', 'path=y\n', '3 path=y\n'])
      await expect(readTarball(Buffer.concat([entry('x', 'x', record), entry('x', '0')]))).rejects.toMatchObject({
        message: 'a long name in it is damaged',
      });
  });

  it('a tarball of very many entries is refused', async () => {
    const many = Buffer.concat([...Array.from({ length: 20_001 }, () => entry('package/x', '0')), end]);
    await expect(readTarball(gzipSync(many))).rejects.toMatchObject({ message: 'it has more than 20000 entries' });
  });

  it('any bytes give files or a clear error, never anything else', async () => {
    const whole = packed('gnu');
    const damaged = fc
      .record({ at: fc.nat(whole.length - 1), byte: fc.nat(255), cut: fc.nat(whole.length) })
      .map(({ at, byte, cut }) => {
        const copy = Buffer.from(whole.subarray(0, Math.max(cut, 600)));
        copy[at % copy.length] = byte;
        return copy;
      });
    await fc.assert(
      fc.asyncProperty(damaged, async (bytes) => {
        const outcome: unknown = await readTarball(bytes).catch((error: unknown) => error);
        const clear = Array.isArray(outcome) || (outcome as { code?: unknown }).code === 'bad_request';
        expect(clear).toBe(true);
      }),
      { numRuns: 300 },
    );
  });
});
