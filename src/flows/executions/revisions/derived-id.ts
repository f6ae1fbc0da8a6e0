/** Ids that follow from their subject, so that the same run of the interpreter makes the same ids. */
import { createHash } from 'node:crypto';

/** A UUID of version 7: its time is that of the run, so that neighbouring rows share index pages. */
export function deriveId(nowMs: number, subject: string): string {
  const bytes = createHash('sha256').update(subject).digest().subarray(0, 16);
  bytes.writeUIntBE(nowMs, 0, 6);
  bytes.writeUInt8(0x70 | (bytes.readUInt8(6) & 0x0f), 6);
  bytes.writeUInt8(0x80 | (bytes.readUInt8(8) & 0x3f), 8);
  const hex = bytes.toString('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}
