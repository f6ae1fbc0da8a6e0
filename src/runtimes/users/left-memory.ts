/**
 * Memory that outlives every process: shared memory, semaphores and message queues of System V and of POSIX. It would take
 * the machine's memory for good, and belong to the next task that has the same user. Linux only.
 */
import { lstatSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const systemVTables = ['/proc/sysvipc/shm', '/proc/sysvipc/sem', '/proc/sysvipc/msg'];
const posixFolders = ['/dev/shm', '/dev/mqueue'];

/** Run by that user, whose number is `$0`: it may remove what is its own, and nothing else. */
export const removeMemory = `ipcrm --all; find ${posixFolders.join(' ')} -mindepth 1 -maxdepth 1 -user "$0" -exec chmod -R u+rwx {} + -exec rm -rf {} +`;

export function hasMemory(uid: number): boolean {
  return systemVTables.some((path) => ownsEntry(path, uid)) || posixFolders.some((folder) => ownsFile(folder, uid));
}

/** The first line of the table names its columns; `uid` owns the object, `cuid` has made it. */
function ownsEntry(path: string, uid: number): boolean {
  const [head = [], ...rows] = orNone(() => readFileSync(path, 'latin1').trim().split('\n')).map((line) =>
    line.trim().split(/\s+/),
  );
  const columns = ['uid', 'cuid'].map((name) => head.indexOf(name));
  return rows.some((row) => columns.some((column) => row[column] === String(uid)));
}

function ownsFile(folder: string, uid: number): boolean {
  return orNone(() => readdirSync(folder)).some((name) => orNone(() => [lstatSync(join(folder, name)).uid])[0] === uid);
}

/** Nothing where the system has no such file, or it is gone by now. */
function orNone<T>(read: () => T[]): T[] {
  try {
    return read();
  } catch {
    return [];
  }
}
