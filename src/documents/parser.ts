/**
 * Parses documents of jobs and flows for the API without blocking its event loop.
 *
 * 1. A short document is parsed in the event loop, which takes at most some 5 ms.
 * 2. A longer one is parsed in a thread, with bounded memory and time. Starting a thread takes some 50 ms, so an idle thread
 *    is kept for a while. After a large document the thread ends, to free its memory.
 * 3. Tenants take turns (`parse-queue.ts`): one document of a tenant is in progress at a time, in a thread or not. The forecast
 *    of its triggers takes a turn as well.
 */
import { setImmediate } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { clientGone, MillraceError } from '../errors.ts';
import { packageFile } from '../kernel/process/package-files.ts';
import { ParseQueue, type QueueLimits } from './parse-queue.ts';
import type { DocumentFormat } from './text.ts';

export interface ParserLimits extends QueueLimits {
  /** Maximum characters of a document parsed in the event loop. Twenty unknown time zones take as long as 170 lines of YAML. */
  readonly shortChars: number;
  /** Maximum characters of a document whose thread is kept for the next one. */
  readonly keptChars: number;
  /** How long a thread waits for the next document. */
  readonly idleMs: number;
  readonly timeMs: number;
  readonly memoryMb: number;
}

const parserLimits: ParserLimits = {
  shortChars: 512,
  keptChars: 64 * 1024,
  idleMs: 60_000,
  threads: 2,
  /** Clients that apply a folder of small documents at once are common. */
  waitingPerTenant: 32,
  /** The worst document within the limits takes 1.6 s on an idle machine, and several times that on a busy one. */
  timeMs: 10_000,
  memoryMb: 512,
};

/** One message to the thread, whose answer is JSON (`jobs/document/thread.ts`). */
export interface ThreadInput {
  readonly kind: 'job' | 'flow';
  readonly text: string;
  readonly format: DocumentFormat;
  /** What else the parser of this kind needs. */
  readonly limits?: object;
}

export interface ParseRequest<T> {
  readonly input: ThreadInput;
  /** Parses the same in the event loop. */
  readonly parseHere: () => T;
  /** The id of the tenant whose turn the document takes. */
  readonly tenant: string;
  /** Aborts when the client has disconnected. */
  readonly signal?: AbortSignal;
}

export class DocumentParser {
  readonly #limits: ParserLimits;
  readonly #program: string;
  readonly #queue: ParseQueue;
  /** Threads that wait for a document, with the timers that end them. */
  readonly #idle = new Map<Worker, NodeJS.Timeout>();

  constructor(program: string, limits: Partial<ParserLimits> = {}) {
    this.#program = program;
    this.#limits = { ...parserLimits, ...limits };
    this.#queue = new ParseQueue(this.#limits);
  }

  parse<T>({ input, parseHere, tenant, signal }: ParseRequest<T>): Promise<T> {
    if (input.text.length <= this.#limits.shortChars) return this.inTurn(tenant, async () => parseHere(), signal);
    return this.#queue.run(tenant, () => this.#parseInThread<T>(input, signal), signal);
  }

  /** Runs work for a document in the event loop, at the tenant's turn. Other work of the event loop runs between two turns. */
  inTurn<T>(tenant: string, work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    const workAfterOthers = async (): Promise<T> => {
      await setImmediate();
      return work();
    };
    return this.#queue.run(tenant, workAfterOthers, signal);
  }

  async #parseInThread<T>(input: ThreadInput, signal: AbortSignal | undefined): Promise<T> {
    if (signal?.aborted) throw clientGone();
    const thread = this.#takeThread();
    let isKept = false;
    try {
      const answer = await this.#ask(thread, input, signal);
      isKept = input.text.length <= this.#limits.keptChars;
      return JSON.parse(answer) as T;
    } finally {
      if (isKept) this.#keepThread(thread);
      else await thread.terminate();
    }
  }

  async #ask(thread: Worker, input: ThreadInput, signal: AbortSignal | undefined): Promise<string> {
    const { timeMs } = this.#limits;
    let forget = (): void => {};
    const asking = new Promise<string>((resolve, reject) => {
      const onGone = (): void => reject(clientGone());
      const onError = (error: unknown): void => reject(parseError(error));
      const onExit = (): void => reject(new Error('the thread that parses documents ended without an answer'));
      const timer = setTimeout(() => reject(tooLarge(`takes longer than ${timeMs / 1000} s to parse`)), timeMs);
      signal?.addEventListener('abort', onGone);
      // the result is JSON text, which takes half the time of a structured clone
      thread.on('message', resolve).on('error', onError).on('exit', onExit);
      forget = () => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', onGone);
        thread.off('message', resolve).off('error', onError).off('exit', onExit);
      };
    });
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread's port has no origin
    thread.postMessage(input);
    return asking.finally(() => forget());
  }

  #takeThread(): Worker {
    for (const [thread, timer] of this.#idle) {
      clearTimeout(timer);
      this.#idle.delete(thread);
      thread.ref();
      return thread;
    }
    const resourceLimits = { maxOldGenerationSizeMb: this.#limits.memoryMb };
    const thread = new Worker(this.#program, { resourceLimits, env: {}, execArgv: [] });
    // without a listener, an error after the answer would end the process
    thread.on('error', () => {});
    thread.once('exit', () => this.#forgetThread(thread));
    return thread;
  }

  /** An idle thread does not keep the process alive. */
  #keepThread(thread: Worker): void {
    thread.unref();
    const timer = setTimeout(() => {
      this.#forgetThread(thread);
      void thread.terminate();
    }, this.#limits.idleMs);
    this.#idle.set(thread, timer.unref());
  }

  #forgetThread(thread: Worker): void {
    clearTimeout(this.#idle.get(thread));
    this.#idle.delete(thread);
  }
}

function tooLarge(what: string): MillraceError {
  return new MillraceError('too_large', `the document ${what}; split it, or make it smaller`);
}

function parseError(error: unknown): Error {
  if (!(error instanceof Error)) return new Error('the thread that parses documents failed', { cause: error });
  return Reflect.get(error, 'code') === 'ERR_WORKER_OUT_OF_MEMORY' ? tooLarge('takes too much memory') : error;
}

const program = packageFile('dist', 'document-thread.js');

/** For documents that clients send. All tenants of this process share it. */
export const documentParser = new DocumentParser(program);

/** For stored documents. Workers need them, so new documents must not delay them. */
export const storedParser = new DocumentParser(program, { timeMs: 15_000 });
