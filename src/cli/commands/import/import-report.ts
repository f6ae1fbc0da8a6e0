/** The report of an import: what became of each project, job and stash value, or all of it as JSON. */
import type { z } from 'zod';
import type { TenantEndpoints } from '../../../api/endpoints.ts';
import type { ImportOutcome } from '../../../api/imports/endpoints.ts';
import { outlookLines } from '../jobs/forecast.ts';
import { count, type Output } from '../../print/output.ts';
import type { Style } from '../../print/paint.ts';
import { oneLine } from '../../print/width.ts';

type JobAnswer = z.output<TenantEndpoints['POST /api/imports/jobs']['answer']>;

export interface ProjectResult {
  /** The id here; null: it was deleted here. */
  readonly id: string | null;
  readonly name: string;
  readonly outcome: ImportOutcome;
  readonly reason: string | null;
}

export interface JobResult extends Omit<JobAnswer, 'missing'> {
  readonly project: string;
  readonly name: string;
  readonly paused_in_waterwheel: boolean;
  readonly notes: readonly string[];
}

export interface ImportReport {
  readonly dry_run: boolean;
  readonly projects: readonly ProjectResult[];
  readonly jobs: readonly JobResult[];
  readonly stash: {
    readonly written: number;
    readonly unchanged: number;
    /** Of jobs that are active here. */
    readonly kept: number;
    /** Of projects and jobs that are left as they are here. */
    readonly skipped: number;
    readonly conflicts: readonly string[];
  };
  /** null: without `--start`. */
  readonly start: {
    readonly started: readonly string[];
    readonly paused: readonly string[];
    readonly retries: number;
  } | null;
  readonly under_way: readonly { readonly job: string; readonly task: string; readonly instant: string }[];
  readonly waterwheel: { readonly running: boolean; readonly scheduler_seen_seconds_ago: number | null };
  readonly conflicts: number;
}

const outcomeStyles = {
  created: ['+', 'green'],
  changed: ['~', 'yellow'],
  unchanged: ['=', 'dim'],
  conflict: ['✗', 'red'],
} as const satisfies Record<ImportOutcome, readonly [string, Style]>;

export function printReport(out: Output, report: ImportReport): void {
  out.answer(report, () => {
    for (const project of report.projects) showLine(out, report, `project ${project.name}`, project);
    for (const job of report.jobs) showJob(out, report, job);
    showStash(out, report);
    showStart(out, report);
  });
  out.note(summary(report));
}

function showLine(
  out: Output,
  { dry_run: dryRun }: ImportReport,
  title: string,
  { outcome, reason }: Pick<ProjectResult, 'outcome' | 'reason'>,
): void {
  const [mark, style] = outcomeStyles[outcome];
  const would = dryRun && (outcome === 'created' || outcome === 'changed') ? 'would be ' : '';
  const why = reason === null ? '' : `: ${oneLine(reason)}`;
  out.line(`${out.paint(style, `${mark} ${oneLine(title)} ${would}${outcome}`)}${why}`);
}

function showJob(out: Output, report: ImportReport, job: JobResult): void {
  showLine(out, report, `${job.project}/${job.name}`, job);
  const parts = [
    ...(job.triggers > 0 ? [count(job.triggers, 'trigger position')] : []),
    ...(job.tokens > 0 ? [count(job.tokens, 'token')] : []),
  ];
  if (parts.length > 0) out.line(`    ${parts.join(', ')}`);
  for (const text of [...job.notes, ...job.warnings.map(({ path, message }) => `${path}: ${message}`)]) {
    out.line(`    ${out.paint('yellow', '! note')}: ${oneLine(text)}`);
  }
  if (job.outlook !== undefined && (report.start !== null || job.outcome !== 'unchanged')) {
    for (const line of outlookLines(job.outlook, out.width)) out.line(line);
  }
}

function showStash(out: Output, { dry_run: dryRun, stash }: ImportReport): void {
  const { written, unchanged, kept, skipped, conflicts } = stash;
  if (written + unchanged + kept + skipped + conflicts.length === 0) return;
  const parts = [
    `${written} ${dryRun ? 'would be written' : 'written'}`,
    `${unchanged} unchanged`,
    ...(kept > 0 ? [`${kept} kept, because their jobs are active here`] : []),
    ...(skipped > 0 ? [`${skipped} of projects and jobs with conflicts left out`] : []),
  ];
  out.line(`stash: ${parts.join(', ')}`);
  for (const name of conflicts) {
    out.line(`  ${out.paint('red', '✗')} ${oneLine(name)} differs here; --overwrite takes that of Waterwheel`);
  }
}

function showStart(out: Output, { dry_run: dryRun, start }: ImportReport): void {
  if (start === null) return;
  const verb = dryRun ? 'would be started' : 'started';
  for (const name of start.started) out.line(out.paint('green', `▶ ${oneLine(name)} ${verb}`));
  for (const name of start.paused) out.line(out.paint('dim', `‖ ${oneLine(name)} stays paused, as in Waterwheel`));
  if (start.retries > 0) out.line(`${start.retries} retries wait again`);
}

function summary(report: ImportReport): string {
  const { dry_run: dryRun, jobs, projects, stash, start, conflicts, under_way: underWay, waterwheel } = report;
  const isChanged = [...jobs, ...projects].some(({ outcome }) => outcome === 'created' || outcome === 'changed');
  const starts = start !== null && start.started.length + start.paused.length > 0;
  const lines = [`${count(projects.length, 'project')}, ${count(jobs.length, 'job')}`];
  if (!isChanged && !starts && stash.written === 0) lines[0] += ': nothing to change';
  if (conflicts > 0) lines[0] += `; ${count(conflicts, 'conflict')}, left as it is here`;
  if (dryRun) lines[0] += ' (a dry run: nothing was written)';
  if (start === null && jobs.some(({ resumes }) => resumes)) {
    lines.push('imported jobs are paused until `millrace import waterwheel --start`');
  }
  if (start === null && underWay.length > 0) lines.push(`${count(underWay.length, 'run')} under way in Waterwheel`);
  if (waterwheel.running) lines.push('Waterwheel still fires: stop it, then import again');
  return lines.join('\n');
}
