/**
 * Memory that outlives every process: shared memory, semaphores and message queues of System V and of POSIX. It would occupy the
 * machine's memory for ever, and belong to the next task with the same user. Linux only.
 */
import { lstatSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const systemVTables = ['/proc/sysvipc/shm', '/proc/sysvipc/sem', '/proc/sysvipc/msg'];
const posixFolders = ['/dev/shm', '/dev/mqueue'];

/** Run by the user with the number `$0`, who may remove only its own memory. */
export const removeMemory = `ipcrm --all; find ${posixFolders.join(' ')} -mindepth 1 -maxdepth 1 -user "$0" -exec chmod -R u+rwx {} + -exec rm -rf {} +`;

export function hasMemory(uid: number): boolean {
  return systemVTables.some((path) => ownsEntry(path, uid)) || posixFolders.some((folder) => ownsFile(folder, uid));
}

/** The first line of the table names its columns; `uid` is the owner of the object, `cuid` its creator. */
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

/** Empty if the system has no such file, or it no longer exists. */
function orNone<T>(read: () => T[]): T[] {
  try {
    return read();
  } catch {
    return [];
  }
}
