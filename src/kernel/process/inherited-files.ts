/**
 * Closes files that this process inherited beside its standard streams, so that no task gets them: `millrace up 20<secret`.
 *
 * Node marks descriptors that it opens itself, and inherited descriptors below 16, as close-on-exec (FD_CLOEXEC). Any other
 * descriptor without that mark was inherited. Node has no call to mark it, so it is closed. Linux only: other systems have no
 * /proc/self/fdinfo.
 */
import { closeSync, readdirSync, readFileSync } from 'node:fs';

const firstBesideStreams = 3;
/** The flag in /proc/PID/fdinfo of a descriptor that is not passed on. */
const closeOnExec = 0o2000000;

export function closeInheritedFiles(): void {
  for (const descriptor of openDescriptors()) {
    if (descriptor >= firstBesideStreams && isPassedOn(descriptor)) closeSync(descriptor);
  }
}

function openDescriptors(): number[] {
  try {
    return readdirSync('/proc/self/fd').map(Number);
  } catch {
    return [];
  }
}

function isPassedOn(descriptor: number): boolean {
  try {
    const flags = /^flags:\s*([0-7]+)$/m.exec(readFileSync(`/proc/self/fdinfo/${descriptor}`, 'latin1'))?.[1];
    return flags !== undefined && (Number.parseInt(flags, 8) & closeOnExec) === 0;
  } catch {
    // the descriptor by which the list was read is closed by now
    return false;
  }
}
