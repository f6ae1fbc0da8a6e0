/**
 * Reads a tarball as `npm pack` writes it: ustar, with the long names of pax and GNU, gzipped or not. It accepts only files
 * with relative paths that stay inside: links, devices, absolute paths and `..` are refused.
 */
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { MillraceError } from '../../errors.ts';

export interface TarFile {
  readonly path: string;
  readonly data: Buffer;
}

const block = 512;
/** Limit against zip bombs: far more than any release. */
const maxBytes = 512 * 1024 * 1024;
/** Headers, those of long names included: far more than any release has. 300,000 took half a minute on a busy machine. */
const maxHeaders = 20_000;

/** Throws a MillraceError that says what is wrong with it. */
export async function readTarball(bytes: Buffer): Promise<TarFile[]> {
  return [...filesOf(isGzip(bytes) ? await unzip(bytes) : bytes)];
}

/** Judges by the first bytes only. */
export function isTarball(bytes: Buffer): boolean {
  return isGzip(bytes) || (bytes.length >= block && hasChecksum(bytes.subarray(0, block)));
}

function isGzip(bytes: Buffer): boolean {
  return bytes[0] === 0x1f && bytes[1] === 0x8b;
}

async function unzip(bytes: Buffer): Promise<Buffer> {
  try {
    return await promisify(gunzip)(bytes, { maxOutputLength: maxBytes });
  } catch (error) {
    throw new MillraceError('bad_request', 'it is cut off, damaged or far too large', { cause: error });
  }
}

interface Header {
  readonly path: string;
  readonly size: number;
  readonly type: string;
}

const plain = new Set(['0', '\0', '7']);
const folder = '5';
const paxNext = 'x';
const paxAll = 'g';
const gnuName = 'L';

function* filesOf(bytes: Buffer): Generator<TarFile> {
  let override: Partial<Header> = {};
  let headers = 0;
  for (let at = 0; at + block <= bytes.length && !isEnd(bytes.subarray(at, at + block)); ) {
    if (++headers > maxHeaders) throw new MillraceError('bad_request', `it has more than ${maxHeaders} entries`);
    const header = { ...readHeader(bytes.subarray(at, at + block)), ...override };
    if (!Number.isSafeInteger(header.size))
      throw new MillraceError('bad_request', `the size of ${JSON.stringify(header.path)} in it is not a number`);
    const data = bytes.subarray(at + block, at + block + header.size);
    if (data.length < header.size) throw new MillraceError('bad_request', `it ends in the middle of ${header.path}`);
    at += block + Math.ceil(header.size / block) * block;
    if (header.type === paxNext) override = readPax(data);
    else if (header.type === gnuName) override = { path: textOf(data) };
    else if (header.type !== paxAll) {
      override = {};
      if (header.type !== folder) yield { path: checkPath(header), data };
    }
  }
}

function isEnd(bytes: Buffer): boolean {
  return bytes.every((byte) => byte === 0);
}

function hasChecksum(header: Buffer): boolean {
  return readNumber(header.subarray(148, 156)) === checksumOf(header);
}

function readHeader(bytes: Buffer): Header {
  const field = (from: number, length: number): Buffer => bytes.subarray(from, from + length);
  if (!hasChecksum(bytes)) throw new MillraceError('bad_request', 'it is not a tarball, or a damaged one');
  const prefix = textOf(field(257, 5)) === 'ustar' ? textOf(field(345, 155)) : '';
  const name = textOf(field(0, 100));
  return {
    path: prefix === '' ? name : `${prefix}/${name}`,
    size: readNumber(field(124, 12)),
    type: String.fromCharCode(bytes[156] ?? 0),
  };
}

/** Sums all bytes; those of the checksum field itself count as blanks. */
function checksumOf(bytes: Buffer): number {
  return bytes.reduce((sum, byte, i) => sum + (i >= 148 && i < 156 ? 0x20 : byte), 0);
}

/** Octal digits, or binary after 0x80 for larger numbers. Returns NaN for anything else, negative numbers included. */
function readNumber(field: Buffer): number {
  if (((field[0] ?? 0) & 0x80) === 0) return digits(textOf(field).trim() || '0', 8);
  return field[0] === 0x80 ? field.subarray(1).reduce((sum, byte) => sum * 256 + byte, 0) : Number.NaN;
}

function digits(text: string, radix: 8 | 10): number {
  return (radix === 8 ? /^[0-7]+$/ : /^\d+$/).test(text) ? Number.parseInt(text, radix) : Number.NaN;
}

function textOf(field: Buffer): string {
  const end = field.indexOf(0);
  return field.toString('utf8', 0, end < 0 ? field.length : end);
}

/** Records of the form `LENGTH KEY=VALUE\n`, where the length is of the whole record. */
function readPax(data: Buffer): Partial<Header> {
  const header: { path?: string; size?: number } = {};
  for (let at = 0; at < data.length; ) {
    const blank = data.indexOf(0x20, at);
    const length = Number(data.toString('utf8', at, blank));
    if (blank < 0 || !Number.isInteger(length) || length <= blank - at || at + length > data.length)
      throw new MillraceError('bad_request', 'a long name in it is damaged');
    const [key = '', ...value] = data.toString('utf8', blank + 1, at + length - 1).split('=');
    if (key === 'path') header.path = value.join('=');
    if (key === 'size') header.size = digits(value.join('='), 10);
    at += length;
  }
  return header;
}

function checkPath({ path, type }: Header): string {
  const quoted = JSON.stringify(path);
  if (!plain.has(type)) throw new MillraceError('bad_request', `${quoted} in it is a link or a device, not a file`);
  const parts = path.split('/').filter((part) => part !== '.' && part !== '');
  const leaves = path.startsWith('/') || parts.includes('..') || path.includes('\0') || parts.length === 0;
  if (leaves) throw new MillraceError('bad_request', `${quoted} in it leads out of the folder it is unpacked to`);
  return parts.join('/');
}
