/**
 * Where a process is, as far as its number means the same: a machine, or a container that counts processes for itself.
 * Containers may share a machine's name, and then the same number is another process in each.
 */
import { readlinkSync } from 'node:fs';
import { hostname } from 'node:os';

/** Linux' own, which every process is in that is in no container. */
const outermost = 'pid:[4026531836]';

export function machineOf(namespace: string | undefined, name: string): string {
  const number = namespace === outermost ? undefined : /^pid:\[(\d+)\]$/.exec(namespace ?? '')?.[1];
  return number === undefined ? name : `${name}/${number}`;
}

export const machine = machineOf(namespaceHere(), hostname());

function namespaceHere(): string | undefined {
  try {
    return readlinkSync('/proc/self/ns/pid');
  } catch {
    return undefined;
  }
}
