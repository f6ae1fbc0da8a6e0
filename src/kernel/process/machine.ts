/**
 * Identifies the scope in which process numbers are unique: a machine, or a container with a PID namespace of its own.
 * Containers may share a machine's name, but the same number is another process in each.
 */
import { readlinkSync } from 'node:fs';
import { hostname } from 'node:os';

/** The initial PID namespace of Linux. Every process outside of containers is in it. */
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
