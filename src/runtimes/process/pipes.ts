/**
 * Pipes for the output of tasks. Node's own are sockets, and a script with `echo oops > /dev/stderr` cannot open a socket
 * (ENXIO, measured). These are real pipes: FIFOs, several of which are created in advance by one call of mkfifo, and unlinked
 * when taken. If temporary files of the machine are cleaned up, they are created again.
 */
import { execFile } from 'node:child_process';
import { closeSync, constants, openSync, unlinkSync } from 'node:fs';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Two open descriptors, both close-on-exec. The caller closes them. */
export interface PipeEnds {
  readonly read: number;
  readonly write: number;
}

const folderName = 'millrace-pipes-';

export class PipeStock {
  readonly #size: number;
  readonly #paths: string[] = [];
  #folder: string;
  #made = 0;
  #making: Promise<void> | undefined;
  #renewal: Promise<void> | undefined;

  private constructor(folder: string, size: number) {
    this.#folder = folder;
    this.#size = size;
  }

  static async make(size = 32): Promise<PipeStock> {
    return new PipeStock(await makeFolder(), size);
  }

  /** The folder of pipes that are not taken yet, and of files that belong to tasks. */
  get folder(): string {
    return this.#folder;
  }

  async take(): Promise<PipeEnds> {
    try {
      return open(await this.#path());
    } catch (error) {
      if (!isMissing(error)) throw error;
      this.#renewal ??= this.#beginAnew().finally(() => {
        this.#renewal = undefined;
      });
      await this.#renewal;
      return open(await this.#path());
    }
  }

  async remove(): Promise<void> {
    await rm(this.#folder, { recursive: true, force: true });
  }

  async #path(): Promise<string> {
    let path = this.#paths.pop();
    while (path === undefined) {
      await this.#make();
      path = this.#paths.pop();
    }
    if (this.#paths.length < this.#size / 4) this.#make().catch(() => {}); // a later call that finds none reports the error
    return path;
  }

  async #beginAnew(): Promise<void> {
    await this.#making?.catch(() => {});
    await this.remove();
    this.#paths.length = 0;
    // a new name, because another user may have taken the old one by now
    this.#folder = await makeFolder();
  }

  #make(): Promise<void> {
    this.#making ??= this.#refill().finally(() => {
      this.#making = undefined;
    });
    return this.#making;
  }

  async #refill(): Promise<void> {
    const paths = Array.from({ length: this.#size }, () => join(this.#folder, String(this.#made++)));
    await run('mkfifo', ['-m', '600', ...paths]).catch((error: unknown) => {
      throw isProgramMissing(error)
        ? new Error('this machine has no mkfifo: install coreutils', { cause: error })
        : error;
    });
    this.#paths.push(...paths);
  }
}

/** Tasks of other users can open their own files in it by name, but can neither list nor change it. */
async function makeFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), folderName));
  await chmod(folder, 0o711);
  return folder;
}

/** A pipe is missing, or the folder for mkfifo; not mkfifo itself. */
function isMissing(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code: unknown = Reflect.get(error, 'code');
  return code === 1 || (code === 'ENOENT' && Reflect.get(error, 'syscall') === 'open');
}

/** Of a minimal container image, for example. Without an error code of its own: it is not the task's command that is missing. */
function isProgramMissing(error: unknown): boolean {
  return (
    error instanceof Error &&
    Reflect.get(error, 'syscall') === 'spawn mkfifo' &&
    Reflect.get(error, 'code') === 'ENOENT'
  );
}

/** The reading end is opened first, without waiting for a writer. Then opening the writing end does not wait either. */
function open(path: string): PipeEnds {
  const read = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const write = openSync(path, constants.O_WRONLY);
    return { read, write };
  } catch (error) {
    closeSync(read);
    throw error;
  } finally {
    unlinkSync(path);
  }
}
