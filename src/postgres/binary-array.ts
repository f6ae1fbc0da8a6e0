/**
 * Array parameters in PostgreSQL's binary format. `pg` sends a `Buffer` as a binary parameter. For batches of hundreds of rows this is
 * much cheaper than the text of an array: text cost 30 % of the rate of committed executions.
 *
 * The statement must cast the parameter to the type: `${uuidArray(ids)}::uuid[]`.
 */

const oids = { bool: 16, int2: 21, int4: 23, text: 25, json: 114, timestamptz: 1184, uuid: 2950 } as const;

const headerBytes = 20;
/** PostgreSQL counts from the year 2000. */
const epochMs = Date.UTC(2000, 0, 1);

interface Sized {
  readonly oid: number;
  readonly count: number;
  /** Of all items, without their lengths. */
  readonly bytes: number;
  readonly hasNull: boolean;
}

/** An array with its header. Items follow from `headerBytes` on. */
function allocate({ oid, count, bytes, hasNull }: Sized): Buffer {
  const buffer = Buffer.allocUnsafe(headerBytes + 4 * count + bytes);
  buffer.writeInt32BE(1, 0);
  buffer.writeInt32BE(hasNull ? 1 : 0, 4);
  buffer.writeInt32BE(oid, 8);
  buffer.writeInt32BE(count, 12);
  buffer.writeInt32BE(1, 16);
  return buffer;
}

/** Without items PostgreSQL wants no dimension. */
function emptyArray(oid: number): Buffer {
  const buffer = Buffer.alloc(12);
  buffer.writeInt32BE(oid, 8);
  return buffer;
}

function fixedArray<T>(
  oid: number,
  items: readonly (T | null)[],
  { size, write }: { readonly size: number; readonly write: (buffer: Buffer, item: T, at: number) => void },
): Buffer {
  if (items.length === 0) return emptyArray(oid);
  let present = 0;
  for (const item of items) if (item !== null) present += 1;
  const sized = { oid, count: items.length, bytes: present * size, hasNull: present < items.length };
  const buffer = allocate(sized);
  let at = headerBytes;
  for (const item of items) {
    buffer.writeInt32BE(item === null ? -1 : size, at);
    at += 4;
    if (item === null) continue;
    write(buffer, item, at);
    at += size;
  }
  return buffer;
}

const uuidItem = {
  size: 16,
  write: (buffer: Buffer, id: string, at: number): void => void buffer.write(id.replaceAll('-', ''), at, 'hex'),
};
const integerItem = {
  size: 4,
  write: (buffer: Buffer, value: number, at: number): void => void buffer.writeInt32BE(value, at),
};
const smallIntegerItem = {
  size: 2,
  write: (buffer: Buffer, value: number, at: number): void => void buffer.writeInt16BE(value, at),
};
const booleanItem = {
  size: 1,
  write: (buffer: Buffer, value: boolean, at: number): void => void buffer.writeInt8(value ? 1 : 0, at),
};
const timeItem = {
  size: 8,
  write: (buffer: Buffer, ms: number, at: number): void =>
    void buffer.writeBigInt64BE(BigInt(Math.ceil(ms) - epochMs) * 1000n, at),
};

export function uuidArray(items: readonly (string | null)[]): Buffer {
  return fixedArray(oids.uuid, items, uuidItem);
}

export function integerArray(items: readonly (number | null)[]): Buffer {
  return fixedArray(oids.int4, items, integerItem);
}

export function smallIntegerArray(items: readonly (number | null)[]): Buffer {
  return fixedArray(oids.int2, items, smallIntegerItem);
}

export function booleanArray(items: readonly (boolean | null)[]): Buffer {
  return fixedArray(oids.bool, items, booleanItem);
}

/** Times in ms since 1970, rounded up to whole ones: read back as a `Date`, they must not be earlier. */
export function timeArray(items: readonly (number | null)[]): Buffer {
  return fixedArray(oids.timestamptz, items, timeItem);
}

export function jsonArray(items: readonly (string | null)[]): Buffer {
  return stringArray(oids.json, items);
}

/** PostgreSQL stores no zero characters in texts: they are left out. */
export function textArray(items: readonly (string | null)[]): Buffer {
  return stringArray(
    oids.text,
    items.map((item) => (item?.includes('\0') === true ? item.replaceAll('\0', '') : item)),
  );
}

function stringArray(oid: number, items: readonly (string | null)[]): Buffer {
  if (items.length === 0) return emptyArray(oid);
  const lengths = items.map((item) => (item === null ? -1 : Buffer.byteLength(item)));
  let bytes = 0;
  let hasNull = false;
  for (const length of lengths) {
    if (length < 0) hasNull = true;
    else bytes += length;
  }
  const buffer = allocate({ oid, count: items.length, bytes, hasNull });
  let at = headerBytes;
  for (const [i, item] of items.entries()) {
    const length = lengths[i] ?? -1;
    buffer.writeInt32BE(length, at);
    at += 4;
    if (item !== null) at += buffer.write(item, at);
  }
  return buffer;
}
