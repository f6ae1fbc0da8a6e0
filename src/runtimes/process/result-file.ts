/**
 * The file that a task writes its result to (`MILLRACE_RESULT`). It is created before the task starts, for the task's user
 * only, in a folder that a task of another user cannot change: nothing else can replace it. It is read once, after the task has
 * ended, and removed.
 */
import { closeSync, constants, fchownSync, fstatSync, openSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { maxResultBytes } from '../../contract/wire.ts';
import type { Outcome } from '../contract.ts';
import { resultOfText } from '../task/result.ts';
import type { TaskUser } from '../users/task-users.ts';

export const resultVariable = 'MILLRACE_RESULT';

/** A link is not followed, and a pipe is not waited for: a task of the worker's own user may have created one. */
const readSafely = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

export class ResultFile {
  readonly path: string;

  constructor(folder: string, mark: string, user: TaskUser | undefined) {
    this.path = join(folder, `result-${mark}`);
    const file = openSync(this.path, 'w', 0o600);
    try {
      if (user !== undefined) fchownSync(file, user.uid, user.gid);
    } finally {
      closeSync(file);
    }
  }

  /** The result; empty if the task wrote nothing, or removed the file. */
  read(): Pick<Outcome, 'result' | 'unkept'> {
    try {
      return this.#read();
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return {};
      return { unkept: `its result cannot be read: ${error instanceof Error ? error.message : String(error)}` };
    }
  }

  #read(): Pick<Outcome, 'result' | 'unkept'> {
    const file = openSync(this.path, readSafely);
    try {
      const found = fstatSync(file);
      if (!found.isFile()) return { unkept: `${resultVariable} is not a regular file` };
      if (found.size > maxResultBytes)
        return { unkept: `its result has ${found.size} bytes of JSON; at most ${maxResultBytes} are kept` };
      return resultOfText(new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(file)));
    } finally {
      closeSync(file);
    }
  }

  remove(): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}
