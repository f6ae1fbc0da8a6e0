/** How much memory this machine has, or the container on it that this process is in. */
import { totalmem } from 'node:os';

export function memoryBytes(): number {
  return Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY);
}
