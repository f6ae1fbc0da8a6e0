/**
 * Pipes for tasks' output. Node's own are sockets, and a script that says `echo oops > /dev/stderr` cannot open a socket
 * (ENXIO, measured); these are real pipes, made as FIFOs, some ahead by one call of mkfifo, and unlinked when taken.
 * Whoever tidies up the machine's temporary files may take them away: then they are made anew.
 */
import { execFile } from 'node:child_process';
import { closeSync, constants, openSync, unlinkSync } from 'node:fs';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Two open descriptors, both closed on exec. Whoever takes them closes them. */
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

  /** Where the pipes are until they are taken, and files that belong to tasks. */
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
    if (this.#paths.length < this.#size / 4) this.#make().catch(() => {}); // whoever finds none left will hear of it
    return path;
  }

  async #beginAnew(): Promise<void> {
    await this.#making?.catch(() => {});
    await this.remove();
    this.#paths.length = 0;
    // another name: by now somebody else may have taken the old one
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
    await run('mkfifo', ['-m', '600', ...paths]);
    this.#paths.push(...paths);
  }
}

/** Tasks of other users find their own files in it, by name; they can neither list nor change it. */
async function makeFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), folderName));
  await chmod(folder, 0o711);
  return folder;
}

/** A pipe that is gone, or the folder that mkfifo was to make some in; not mkfifo itself. */
function isMissing(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code: unknown = Reflect.get(error, 'code');
  return code === 1 || (code === 'ENOENT' && Reflect.get(error, 'syscall') === 'open');
}

/** The reading end comes first and does not wait for a writer; with it there, the writing end does not wait either. */
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
