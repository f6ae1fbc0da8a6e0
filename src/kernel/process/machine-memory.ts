/** The memory of this machine, or of the container that this process runs in. */
import { totalmem } from 'node:os';

export function memoryBytes(): number {
  return Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY);
}
