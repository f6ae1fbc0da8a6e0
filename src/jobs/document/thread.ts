/**
 * The program of a parser thread: parses documents of jobs and flows one after another, and posts each result as JSON.
 * `documents/parser.ts` starts it. Built as dist/document-thread.js.
 */
import { parentPort } from 'node:worker_threads';
import type { ThreadInput } from '../../documents/parser.ts';
import { readDefinition } from '../../flows/definitions/read-definition.ts';
import type { DocumentLimits } from './limits.ts';
import { parseJobText } from './parse-job.ts';

function parse({ kind, text, format, limits }: ThreadInput): unknown {
  return kind === 'flow' ? readDefinition(text, format) : parseJobText(text, format, limits as DocumentLimits);
}

parentPort?.on('message', (input: ThreadInput) => {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread's port has no origin
  parentPort?.postMessage(JSON.stringify(parse(input)));
});
