/**
 * Parses a job document to a definition, or to its faults (at most 100).
 *
 * No document makes the parser throw, and the cost is linear in the size of the document.
 */
import type { Fault } from '../../errors.ts';
import { faultWords } from '../../kernel/text/shape-faults.ts';
import { buildJob } from '../build.ts';
import { cycleWarnings } from './cycle.ts';
import type { JobDefinition, JsonObject } from '../definition.ts';
import { jobSchema, movedFields, objects } from './document.ts';
import { checkDocument } from './checks.ts';
import { type DocumentLimits, documentLimits, excessFaults, lengthFaults } from './limits.ts';
import { faultsOf, maxFaults } from '../../documents/faults.ts';
import { placeholderWarnings } from './placeholders.ts';
import { periodWarnings } from './period-warnings.ts';
import { checkPlain } from '../../documents/plain-json.ts';
import { type DocumentFormat, readDocument } from '../../documents/text.ts';
import { thresholdWarnings } from './threshold.ts';

export type ParsedJob =
  | { readonly ok: true; readonly job: JobDefinition; readonly warnings: readonly Fault[] }
  | { readonly ok: false; readonly faults: readonly Fault[] };

export function parseJobText(text: string, format: DocumentFormat, limits?: DocumentLimits): ParsedJob {
  const read = readDocument(text, format);
  return read.ok ? parseJob(read.value, limits) : read;
}

export function parseJob(input: unknown, limits: DocumentLimits = documentLimits): ParsedJob {
  const plain = checkPlain(input, limits);
  if (!plain.bounded) return reject(plain.faults);
  const excess = excessFaults(input, limits);
  if (excess.length > 0) return reject([...plain.faults, ...excess]);
  const parsed = jobSchema.safeParse(input, faultWords);
  const shapeFaults = parsed.success ? [] : faultsOf(input, parsed.error.issues, { objects, movedFields });
  const faults = [...plain.faults, ...shapeFaults, ...checkDocument(input)];
  if (plain.faults.length === 0) faults.push(...lengthFaults(input, limits));
  if (!parsed.success || faults.length > 0) return reject(faults);
  // the checks above have proved that the input is plain JSON and an object
  const job = buildJob(parsed.data, input as JsonObject);
  const warnings = [
    ...emptyWarnings(job),
    ...thresholdWarnings(job.tasks),
    ...cycleWarnings(job.tasks),
    ...placeholderWarnings(parsed.data.tasks ?? []),
    ...periodWarnings(parsed.data.triggers ?? []),
  ];
  return { ok: true, job, warnings };
}

/** Only a warning, because a job may hold just triggers, for tasks of other jobs to depend on. */
function emptyWarnings({ tasks, triggers }: JobDefinition): Fault[] {
  if (tasks.length > 0) return [];
  const unless = triggers.length > 0 ? ', unless tasks of other jobs depend on its triggers' : '';
  return [{ path: 'tasks', message: `has no tasks: the job does nothing${unless}` }];
}

function reject(faults: readonly Fault[]): ParsedJob {
  if (faults.length <= maxFaults) return { ok: false, faults };
  const rest = { path: '', message: `has more than ${maxFaults} faults; the others are not listed` };
  return { ok: false, faults: [...faults.slice(0, maxFaults), rest] };
}
