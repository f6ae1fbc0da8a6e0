/**
 * The rules about more than one field of a job document: schedules, ends, names, runtimes, and references within the job.
 *
 * These rules run even if the document has other faults, so that all faults are reported at once. Malformed parts are skipped
 * here, because `document.ts` reports them.
 */
import type { Fault } from '../../errors.ts';
import { documentedKinds } from '../../runtimes/kinds.ts';
import { checkReferences } from './references.ts';
import { formatPath, isRecord, type PathPart, type Records, recordsOf } from '../../kernel/text/path.ts';
import { type Read, readInstant, readSpan } from '../../documents/values.ts';

export function checkDocument(document: unknown): Fault[] {
  if (!isRecord(document)) return [];
  const faults: Fault[] = [];
  const report = (path: readonly PathPart[], message: string) => faults.push({ path: formatPath(path), message });
  if (isGiven(document['overlap']) && !isGiven(document['max_active_instants'])) {
    report(['overlap'], 'needs max_active_instants: without a limit instants do not wait for each other');
  }
  const [triggers, tasks] = [recordsOf(document['triggers']), recordsOf(document['tasks'])];
  for (const [i, trigger] of triggers)
    checkTrigger(trigger, (field, message) => report(['triggers', i, field], message));
  for (const [i, task] of tasks) checkTask(task, (path, message) => report(['tasks', i, ...path], message));
  checkNames(triggers, (i, message) => report(['triggers', i, 'name'], message), 'triggers');
  checkNames(tasks, (i, message) => report(['tasks', i, 'name'], message), 'tasks');
  return [...faults, ...checkReferences(document, triggers, tasks)];
}

function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null;
}

function checkTrigger(
  trigger: Readonly<Record<string, unknown>>,
  report: (field: string, message: string) => void,
): void {
  const [period, cron] = [isGiven(trigger['period']), isGiven(trigger['cron'])];
  if (period && cron) report('cron', 'must not be given together with period: a trigger has one schedule');
  if (!period && !cron) report('period', 'is required, or cron: a trigger has one schedule');
  const start = readIf(trigger['start'], readInstant);
  const end = readIf(trigger['end'], readInstant);
  if (start !== undefined && end !== undefined && end <= start) report('end', 'must be later than start');
}

function checkTask(
  task: Readonly<Record<string, unknown>>,
  report: (path: readonly PathPart[], message: string) => void,
): void {
  const [first, ...others] = documentedKinds.map(({ kind }) => kind).filter((kind) => isGiven(task[kind]));
  for (const other of others) report([other], `must not be given together with ${first}: a task has one runtime`);
  const retry = task['retry'];
  if (!isRecord(retry)) return;
  const delay = readIf(retry['delay'], readSpan);
  const cap = readIf(retry['cap'], readSpan);
  if (delay !== undefined && cap !== undefined && cap < delay)
    report(['retry', 'cap'], 'must not be shorter than delay');
}

function readIf(value: unknown, read: (text: string) => Read<number>): number | undefined {
  const result = typeof value === 'string' ? read(value) : undefined;
  return result?.ok ? result.value : undefined;
}

function checkNames(records: Records, report: (index: number, message: string) => void, list: string): void {
  const seen = new Map<unknown, number>();
  for (const [i, { name }] of records) {
    const first = seen.get(name);
    if (typeof name !== 'string') continue;
    if (first === undefined) seen.set(name, i);
    else report(i, `is also the name of ${list}[${first}]`);
  }
}
