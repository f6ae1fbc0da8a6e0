/**
 * A job document in, a definition or every fault out.
 *
 * Nothing here throws for what a document holds, however strange, and nothing costs more than in proportion to its size.
 */
import type { Fault } from '../errors.ts';
import { faultWords } from '../kernel/shape-faults.ts';
import { buildJob } from './build.ts';
import { cycleWarnings } from './cycle.ts';
import type { JobDefinition, JsonObject } from './definition.ts';
import { jobSchema } from './document.ts';
import { checkDocument } from './document-checks.ts';
import { type DocumentLimits, documentLimits, excessFaults, lengthFaults } from './document-limits.ts';
import { faultsOf, mostFaults } from './document-faults.ts';
import { placeholderWarnings } from './document-placeholders.ts';
import { periodWarnings } from './period-warnings.ts';
import { checkPlain } from './plain.ts';
import { type DocumentFormat, readDocument } from './text.ts';
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
  if (!plain.bounded) return refused(plain.faults);
  const excess = excessFaults(input, limits);
  if (excess.length > 0) return refused([...plain.faults, ...excess]);
  const parsed = jobSchema.safeParse(input, faultWords);
  const shapeFaults = parsed.success ? [] : faultsOf(input, parsed.error.issues);
  const faults = [...plain.faults, ...shapeFaults, ...checkDocument(input)];
  if (plain.faults.length === 0) faults.push(...lengthFaults(input, limits));
  if (!parsed.success || faults.length > 0) return refused(faults);
  // plain and an object, as just proved
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

/** Not a fault: triggers may be kept in a job of their own, for others to depend on. */
function emptyWarnings({ tasks, triggers }: JobDefinition): Fault[] {
  if (tasks.length > 0) return [];
  const unless = triggers.length > 0 ? ', unless tasks of other jobs depend on its triggers' : '';
  return [{ path: 'tasks', message: `there are none: the job does nothing${unless}` }];
}

function refused(faults: readonly Fault[]): ParsedJob {
  if (faults.length <= mostFaults) return { ok: false, faults };
  const rest = { path: '', message: `has ${faults.length - mostFaults} more faults, not listed` };
  return { ok: false, faults: [...faults.slice(0, mostFaults), rest] };
}
