/**
 * A job document in, a definition or every fault out.
 *
 * Nothing here throws for what a document holds, however strange, and nothing costs more than in proportion to its size.
 */
import type { Fault } from '../errors.ts';
import { isRecord } from '../kernel/path.ts';
import { faultWords } from '../kernel/shape-faults.ts';
import { buildJob } from './build.ts';
import { cycleWarnings } from './cycle.ts';
import type { JobDefinition, JsonObject } from './definition.ts';
import { jobSchema } from './document.ts';
import { checkDocument } from './document-checks.ts';
import { faultsOf, mostFaults } from './document-faults.ts';
import { placeholderWarnings } from './document-placeholders.ts';
import { checkPlain } from './plain.ts';
import { type DocumentFormat, readDocument } from './text.ts';
import { thresholdWarnings } from './threshold.ts';

export type ParsedJob =
  | { readonly ok: true; readonly job: JobDefinition; readonly warnings: readonly Fault[] }
  | { readonly ok: false; readonly faults: readonly Fault[] };

export function parseJobText(text: string, format: DocumentFormat): ParsedJob {
  const read = readDocument(text, format);
  return read.ok ? parseJob(read.value) : read;
}

export function parseJob(input: unknown): ParsedJob {
  const plain = checkPlain(input);
  if (!plain.bounded) return refused(plain.faults);
  const long = longLists(input);
  if (long.length > 0) return refused([...plain.faults, ...long]);
  const parsed = jobSchema.safeParse(input, faultWords);
  const shapeFaults = parsed.success ? [] : faultsOf(input, parsed.error.issues);
  const faults = [...plain.faults, ...shapeFaults, ...checkDocument(input)];
  if (!parsed.success || faults.length > 0) return refused(faults);
  // plain and an object, as just proved
  const job = buildJob(parsed.data, input as JsonObject);
  const warnings = [
    ...emptyWarnings(job),
    ...thresholdWarnings(job.tasks),
    ...cycleWarnings(job.tasks),
    ...placeholderWarnings(parsed.data.tasks ?? []),
  ];
  return { ok: true, job, warnings };
}

/** Not a fault: triggers may be kept in a job of their own, for others to depend on. */
function emptyWarnings({ tasks, triggers }: JobDefinition): Fault[] {
  if (tasks.length > 0) return [];
  const unless = triggers.length > 0 ? ', unless tasks of other jobs depend on its triggers' : '';
  return [{ path: 'tasks', message: `there are none: the job does nothing${unless}` }];
}

/** More is a mistake, or an attack; and a job is one transaction. */
const longestList = 10_000;

function longLists(input: unknown): Fault[] {
  if (!isRecord(input)) return [];
  return ['triggers', 'tasks'].flatMap((path) => {
    const list = input[path];
    if (!Array.isArray(list) || list.length <= longestList) return [];
    return [{ path, message: `must not have more than ${longestList} entries` }];
  });
}

function refused(faults: readonly Fault[]): ParsedJob {
  if (faults.length <= mostFaults) return { ok: false, faults };
  const rest = { path: '', message: `has ${faults.length - mostFaults} more faults, not listed` };
  return { ok: false, faults: [...faults.slice(0, mostFaults), rest] };
}
