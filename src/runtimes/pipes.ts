/**
 * Pipes for tasks' output. Node's own are sockets, and a script that says `echo oops > /dev/stderr` cannot open a socket
 * (ENXIO, measured); these are real pipes, made as FIFOs, some ahead by one call of mkfifo, and unlinked when taken.
 */
import { execFile } from 'node:child_process';
import { closeSync, constants, openSync, unlinkSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Two open descriptors, both closed on exec. Whoever takes them closes them. */
export interface PipeEnds {
  readonly read: number;
  readonly write: number;
}

export class PipeStock {
  readonly #folder: string;
  readonly #size: number;
  readonly #paths: string[] = [];
  #made = 0;
  #making: Promise<void> | undefined;

  constructor(folder: string, size = 32) {
    this.#folder = folder;
    this.#size = size;
  }

  async take(): Promise<PipeEnds> {
    let path = this.#paths.pop();
    while (path === undefined) {
      await this.#make();
      path = this.#paths.pop();
    }
    if (this.#paths.length < this.#size / 4) this.#make().catch(() => {}); // whoever finds none left will hear of it
    return open(path);
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
