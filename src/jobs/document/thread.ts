/**
 * The program of a parser thread: parses job documents one after another, and posts each result as JSON. `parser.ts` starts
 * it. Built as dist/document-thread.js.
 */
import { parentPort } from 'node:worker_threads';
import type { DocumentLimits } from './limits.ts';
import { parseJobText } from './parse-job.ts';
import type { DocumentFormat } from '../../documents/text.ts';

/** One message to the thread. */
export interface ThreadInput {
  readonly text: string;
  readonly format: DocumentFormat;
  readonly limits: DocumentLimits;
}

parentPort?.on('message', ({ text, format, limits }: ThreadInput) => {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread's port has no origin
  parentPort?.postMessage(JSON.stringify(parseJobText(text, format, limits)));
});
