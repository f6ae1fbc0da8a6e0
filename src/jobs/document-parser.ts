/**
 * Parses job documents for the API without holding its event loop.
 *
 * 1. A short document is parsed at once: that takes milliseconds, and a thread some 50 ms to start.
 * 2. A longer one is parsed in a thread of its own, with bounded memory and time.
 * 3. Few threads run at a time, and few documents wait for one; more are refused with 503.
 */
import { Worker } from 'node:worker_threads';
import { MillraceError } from '../errors.ts';
import { packageFile } from '../kernel/package-files.ts';
import { type DocumentLimits, documentLimits } from './document-limits.ts';
import type { ThreadInput } from './document-thread.ts';
import { type ParsedJob, parseJobText } from './parse-job.ts';
import type { DocumentFormat } from './text.ts';

export interface ParserLimits {
  /** Characters of a document that is parsed at once. YAML takes ten times as long as JSON, and at worst more. */
  readonly shortChars: Readonly<Record<DocumentFormat, number>>;
  readonly threads: number;
  readonly waiting: number;
  readonly timeMs: number;
  readonly memoryMb: number;
}

const parserLimits: ParserLimits = {
  shortChars: { json: 32 * 1024, yaml: 4 * 1024 },
  threads: 1,
  waiting: 16,
  timeMs: 15_000,
  memoryMb: 512,
};

export class DocumentParser {
  readonly #limits: ParserLimits;
  readonly #program: string;
  #running = 0;
  readonly #waiting: (() => void)[] = [];

  constructor(program: string, limits: Partial<ParserLimits> = {}) {
    this.#program = program;
    this.#limits = { ...parserLimits, ...limits };
  }

  async parse(text: string, format: DocumentFormat, limits: DocumentLimits = documentLimits): Promise<ParsedJob> {
    if (text.length <= this.#limits.shortChars[format]) return parseJobText(text, format, limits);
    await this.#enter();
    try {
      return await this.#parseInThread({ text, format, limits });
    } finally {
      this.#leave();
    }
  }

  async #enter(): Promise<void> {
    const { threads, waiting } = this.#limits;
    if (this.#running < threads) {
      this.#running++;
      return;
    }
    if (this.#waiting.length >= waiting) {
      const headers = { 'retry-after': '5' };
      throw new MillraceError('overloaded', `${waiting} large documents wait to be parsed already; try again`, {
        headers,
      });
    }
    await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  /** The next one takes the place over. */
  #leave(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#running--;
    else next();
  }

  async #parseInThread(input: ThreadInput): Promise<ParsedJob> {
    const { timeMs, memoryMb } = this.#limits;
    const resourceLimits = { maxOldGenerationSizeMb: memoryMb };
    const thread = new Worker(this.#program, { workerData: input, resourceLimits, env: {}, execArgv: [] });
    let timer: NodeJS.Timeout | undefined;
    try {
      return await new Promise<ParsedJob>((resolve, reject) => {
        timer = setTimeout(() => reject(tooLarge(`takes longer than ${timeMs / 1000} s to parse`)), timeMs);
        // as text: parsed in half the time that a structured clone takes
        thread.once('message', (answer: string) => resolve(JSON.parse(answer) as ParsedJob));
        thread.once('error', (error) => reject(isOutOfMemory(error) ? tooLarge('takes too much memory') : error));
        thread.once('exit', () => reject(new Error('the thread that parses documents ended without an answer')));
      });
    } finally {
      clearTimeout(timer);
      await thread.terminate();
    }
  }
}

function tooLarge(what: string): MillraceError {
  return new MillraceError('too_large', `the document ${what}; split the job, or make its document smaller`);
}

function isOutOfMemory(error: unknown): boolean {
  return error instanceof Error && Reflect.get(error, 'code') === 'ERR_WORKER_OUT_OF_MEMORY';
}

const program = packageFile('dist', 'document-thread.js');

/** For what clients send; one for all tenants of this process. */
export const documentParser = new DocumentParser(program);

/** For documents that were accepted once: workers need them, and nobody's new documents delay them. */
export const storedParser = new DocumentParser(program, { waiting: Number.POSITIVE_INFINITY });
