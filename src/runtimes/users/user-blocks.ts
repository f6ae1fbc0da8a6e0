/**
 * Blocks of user numbers, each held by one worker of this machine at a time. A lock is a link to the holder's listening socket
 * (`postgres/embedded/home-lock.ts`): the kernel releases it when the worker dies.
 */
import { randomBytes } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { takeLock } from '../../postgres/embedded/home-lock.ts';
import type { UserRange } from './task-separation.ts';

/** Enough for the places of most workers; a busier one takes more blocks. Workers with different ranges use the same grid. */
const blockSize = 64;

export class UserBlocks {
  readonly #locks: string;
  readonly #range: UserRange;
  readonly #socket = `${process.pid}-${randomBytes(4).toString('hex')}.sock`;
  readonly #held: string[] = [];
  #server: Promise<Server> | undefined;
  #next: number;

  /** `folder` belongs to root. */
  constructor(folder: string, range: UserRange) {
    this.#locks = join(folder, 'locks');
    this.#range = range;
    this.#next = firstBlock(range);
  }

  /** Undefined: all are held. */
  async take(): Promise<UserRange | undefined> {
    this.#server ??= this.#listen();
    await this.#server;
    const { first, last } = this.#range;
    while (this.#next <= last) {
      const start = this.#next;
      this.#next += blockSize;
      const lock = join(this.#locks, String(start));
      if ((await takeLock(lock, this.#socket)) !== undefined) continue;
      this.#held.push(lock);
      return { first: Math.max(first, start), last: Math.min(last, start + blockSize - 1) };
    }
    return undefined;
  }

  async release(): Promise<void> {
    for (const lock of this.#held.splice(0)) await rm(lock, { force: true });
    const server = await this.#server;
    this.#server = undefined;
    this.#next = firstBlock(this.#range);
    await new Promise((resolve) => (server === undefined ? resolve(undefined) : server.close(resolve)));
  }

  async #listen(): Promise<Server> {
    mkdirSync(this.#locks, { recursive: true, mode: 0o700 });
    const server = createServer((socket) => socket.end()).unref();
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(join(this.#locks, this.#socket), resolve);
    });
    server.on('error', () => {});
    return server;
  }
}

function firstBlock({ first }: UserRange): number {
  return first - (first % blockSize);
}
