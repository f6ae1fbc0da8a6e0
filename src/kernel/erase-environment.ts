/**
 * Takes variables out of this process's environment, so that nobody reads them in /proc/PID/environ: neither a task of the
 * same user, nor a child that inherits too much.
 *
 * To delete a variable is not enough: the block that the process was started with stays as it was. On Linux a process can
 * overwrite its own block through /proc/self/mem. Elsewhere there is no such file to read, and the variables are deleted.
 */
import { closeSync, openSync, readFileSync, readSync, writeSync } from 'node:fs';

/** Whoever needs the values has read them before. */
export function eraseEnvironment(names: readonly string[]): void {
  const set = names.filter((name) => process.env[name] !== undefined);
  if (set.length === 0) return;
  try {
    overwrite(set);
  } catch {
    // another system, or one that forbids it; docs/security.md says where
  }
  for (const name of set) delete process.env[name];
}

function overwrite(names: readonly string[]): void {
  const { start, end } = blockOf(readFileSync('/proc/self/stat', 'latin1'));
  const memory = openSync('/proc/self/mem', 'r+');
  try {
    const block = Buffer.alloc(end - start);
    readSync(memory, block, 0, block.length, start);
    for (const { at, length } of valuesIn(block, names)) writeSync(memory, Buffer.alloc(length), 0, length, start + at);
  } finally {
    closeSync(memory);
  }
}

/** Fields 50 and 51 (proc(5): env_start, env_end); the second is a name in parentheses, which may hold anything. */
function blockOf(stat: string): { start: number; end: number } {
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return { start: Number(fields[47]), end: Number(fields[48]) };
}

/** Where the values of these variables are in a block of `NAME=value` texts, each with a zero behind it. */
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
