/**
 * Removes variables from this process's environment, so that they cannot be read in /proc/PID/environ: neither by a task of
 * the same user, nor by a child that inherits too much.
 *
 * Deleting a variable is not enough, because the block that the process was started with keeps it. On Linux a process can
 * overwrite its own block through /proc/self/mem. Other systems have no such file; there the variables are only deleted.
 */
import { closeSync, openSync, readSync, writeSync } from 'node:fs';
import { readProcessStat } from './process-stat.ts';

/** Call it after the values have been read. */
export function eraseEnvironment(names: readonly string[]): void {
  const set = names.filter((name) => process.env[name] !== undefined);
  if (set.length === 0) return;
  try {
    overwrite(set);
  } catch {
    // not Linux, or a system that forbids it; docs/security.md lists the consequences
  }
  for (const name of set) delete process.env[name];
}

function overwrite(names: readonly string[]): void {
  const block = readProcessStat('self')?.environment;
  if (block === undefined) return;
  const { start, end } = block;
  const memory = openSync('/proc/self/mem', 'r+');
  try {
    const bytes = Buffer.alloc(end - start);
    readSync(memory, bytes, 0, bytes.length, start);
    for (const { at, length } of valuesIn(bytes, names)) writeSync(memory, Buffer.alloc(length), 0, length, start + at);
  } finally {
    closeSync(memory);
  }
}

/** The positions of the values of these variables in a block of zero-terminated `NAME=value` texts. */
export function valuesIn(block: Buffer, names: readonly string[]): { at: number; length: number }[] {
  const found: { at: number; length: number }[] = [];
  for (let at = 0; at < block.length; ) {
    const zero = block.indexOf(0, at);
    const end = zero < 0 ? block.length : zero;
    const equals = block.indexOf('=', at);
    const isNamed = equals >= at && equals < end && names.includes(block.toString('latin1', at, equals));
    if (isNamed) found.push({ at: equals + 1, length: end - equals - 1 });
    at = end + 1;
  }
  return found;
}
