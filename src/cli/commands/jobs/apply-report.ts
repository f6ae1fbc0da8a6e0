/** The report of `apply`: the outcome and the changes of each job, or all of it as JSON. */
import type { z } from 'zod';
import type { TenantEndpoints } from '../../../api/endpoints.ts';
import type { Fault } from '../../../errors.ts';
import { renderChanges } from '../../print/diff.ts';
import { jobKey } from './documents.ts';
import { outlookLines, startedLines } from './forecast.ts';
import { count, type Output } from '../../print/output.ts';
import { type Style } from '../../print/paint.ts';
import { oneLine } from '../../print/width.ts';

export type Applied = z.output<TenantEndpoints['PUT /api/jobs']['answer']>;

interface About {
  readonly file: string;
  readonly project: string;
  readonly name: string;
}

/** `follows`: in a dry run, a job that refers to jobs which this apply would create, so the server cannot compare it yet. */
interface Success extends About, Omit<Applied, 'id' | 'outcome' | 'version'> {
  readonly outcome: Applied['outcome'] | 'follows';
  /** null: not known yet, in a dry run. */
  readonly id: string | null;
  readonly version: number | null;
}

interface Failure extends About {
  readonly outcome: 'failed';
  readonly error: { readonly code: string; readonly message: string; readonly faults: readonly Fault[] };
}

export type Result = Success | Failure;

export interface Report {
  readonly dry_run: boolean;
  readonly projects_created: readonly string[];
  readonly jobs: readonly Result[];
  readonly pruned: readonly { readonly id: string; readonly project: string; readonly name: string }[];
}

const outcomeStyles = {
  created: ['+', 'green'],
  changed: ['~', 'yellow'],
  unchanged: ['=', 'dim'],
  follows: ['+', 'green'],
  failed: ['✗', 'red'],
} as const satisfies Record<Result['outcome'], readonly [string, Style]>;

export function applyReport(out: Output, report: Report): void {
  const would = report.dry_run ? 'would be ' : '';
  out.answer(report, () => {
    for (const name of report.projects_created)
      out.line(out.paint('green', `+ project ${oneLine(name)} ${would}created`));
    for (const result of report.jobs) showResult(out, result);
    for (const job of report.pruned) out.line(out.paint('red', `- ${oneLine(jobKey(job))} ${would}deleted`));
  });
  out.note(summary(report));
}

function showResult(out: Output, result: Result): void {
  const [mark, style] = outcomeStyles[result.outcome];
  const title = oneLine(jobKey(result));
  if (result.outcome === 'failed') {
    const { message, faults } = result.error;
    // the message of an error with faults is the list of these
    const reason = faults.length > 0 ? '' : `: ${oneLine(message)}`;
    out.line(`${out.paint(style, `${mark} ${title} failed`)} (${oneLine(result.file)})${reason}`);
    for (const fault of faults) out.line(`    ${oneLine(`${fault.path}: ${fault.message}`)}`);
    return;
  }
  const version = result.version === null ? '' : ` (version ${result.version})`;
  out.line(`${out.paint(style, `${mark} ${title} ${outcomeText(result)}`)}${version}`);
  // a new job would list its whole file as changes
  const changes = result.outcome === 'created' ? [] : result.changes;
  for (const line of renderChanges(changes, out.paint)) out.line(line);
  for (const line of causedLines(result, out)) out.line(line);
  for (const { path, message } of result.warnings) {
    out.line(`    ${out.paint('yellow', '! warning')}: ${oneLine(`${path}: ${message}`)}`);
  }
}

/** A dry run prints the whole forecast, a real run only what triggers do now. */
function causedLines({ outlook, dry_run: dryRun }: Success, out: Output): string[] {
  if (outlook === undefined) return [];
  return dryRun ? outlookLines(outlook, out.width) : startedLines(outlook);
}

function outcomeText({ outcome, dry_run }: Success): string {
  if (outcome === 'follows') return 'would follow: it refers to jobs that this apply would create';
  return dry_run && outcome !== 'unchanged' ? `would be ${outcome}` : outcome;
}

function summary(report: Report): string {
  const outcomes = ['created', 'changed', 'unchanged', 'follows', 'failed'] as const;
  const counts = outcomes.flatMap((outcome) => {
    const number = report.jobs.filter((job) => job.outcome === outcome).length;
    return number === 0 ? [] : [`${number} ${outcome}`];
  });
  if (report.pruned.length > 0) counts.push(`${report.pruned.length} ${report.dry_run ? 'to delete' : 'deleted'}`);
  const dry = report.dry_run ? ' (a dry run: nothing was written)' : '';
  return `${count(report.jobs.length, 'job')}: ${counts.join(', ')}${dry}`;
}
