/**
 * Parses one job document in a thread of its own, and answers the result as JSON; `document-parser.ts` starts it. Built as
 * dist/document-thread.js.
 */
import { parentPort, workerData } from 'node:worker_threads';
import type { DocumentLimits } from './document-limits.ts';
import { parseJobText } from './parse-job.ts';
import type { DocumentFormat } from './text.ts';

/** What the thread is started with. */
export interface ThreadInput {
  readonly text: string;
  readonly format: DocumentFormat;
  readonly limits: DocumentLimits;
}

const { text, format, limits } = workerData as ThreadInput;
// oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread's port has no origin
parentPort?.postMessage(JSON.stringify(parseJobText(text, format, limits)));
