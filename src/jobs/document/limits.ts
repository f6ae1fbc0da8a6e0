/**
 * Size limits of a job document. New documents must keep `documentLimits`. Documents that were applied before these limits
 * existed stay readable under the wider `storedLimits`. The table in docs/jobs.md lists the limits.
 */
import type { Fault } from '../../errors.ts';
import { isRecord, recordsOf } from '../../kernel/text/path.ts';
import type { PlainLimits } from '../../documents/plain-json.ts';
import { paramsFault } from '../params.ts';

export interface DocumentLimits extends PlainLimits {
  readonly tasks: number;
  readonly triggers: number;
  /** References of all tasks together. */
  readonly edges: number;
}

export const documentLimits: DocumentLimits = {
  values: 100_000,
  tasks: 2_000,
  triggers: 1_000,
  edges: 10_000,
  strict: true,
};

export const storedLimits: DocumentLimits = {
  values: 500_000,
  tasks: 10_000,
  triggers: 10_000,
  edges: 500_000,
  strict: false,
};

/** Checks the numbers of triggers, tasks and references, before any more expensive step. */
export function excessFaults(input: unknown, limits: DocumentLimits): Fault[] {
  if (!isRecord(input)) return [];
  const faults: Fault[] = [];
  for (const list of ['triggers', 'tasks'] as const) {
    const length = lengthOf(input[list]);
    if (length > limits[list]) faults.push({ path: list, message: `must not have more than ${limits[list]} entries` });
  }
  const edges = edgeCount(input);
  if (edges > limits.edges) {
    const message = `have ${edges} references in depends, depends_failure and depends_done; at most ${limits.edges} are allowed`;
    faults.push({ path: 'tasks', message });
  }
  return faults;
}

/** Maximum bytes of a task as JSON. A worker receives the definitions of many tasks in one message. */
const maxTaskBytes = 256 * 1024;

/** Checks the length of tasks and params in a document that is plain JSON. */
export function lengthFaults(input: unknown, { strict }: DocumentLimits): Fault[] {
  if (!strict || !isRecord(input)) return [];
  const faults = recordsOf(input['tasks']).flatMap(([i, task]) => {
    const bytes = Buffer.byteLength(JSON.stringify(task));
    if (bytes <= maxTaskBytes) return [];
    return [{ path: `tasks[${i}]`, message: `takes ${bytes} bytes as JSON; at most ${maxTaskBytes} are allowed` }];
  });
  const message = paramsFault(input['params']);
  return message === undefined ? faults : [...faults, { path: 'params', message }];
}

function lengthOf(list: unknown): number {
  return Array.isArray(list) ? list.length : 0;
}

function edgeCount(input: Readonly<Record<string, unknown>>): number {
  return recordsOf(input['tasks']).reduce(
    (sum, [, task]) =>
      sum + lengthOf(task['depends']) + lengthOf(task['depends_failure']) + lengthOf(task['depends_done']),
    0,
  );
}
