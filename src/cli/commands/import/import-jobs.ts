/**
 * Imports jobs, one request and one transaction each. A dry run finds what the server would reject.
 *
 * A job may refer to jobs that come later. These references are left out at first and reported; the job is imported once more
 * when all are here.
 */
import type { z } from 'zod';
import type { TenantEndpoints } from '../../../api/endpoints.ts';
import { type Fault, MillraceError } from '../../../errors.ts';
import { CallFailed } from '../../../http/client.ts';
import { groupBy } from '../../../kernel/group-by.ts';
import { hasPart } from '../jobs/documents.ts';
import { inOrder } from '../jobs/order.ts';
import { count } from '../../print/output.ts';
import type { JobResult } from './import-report.ts';
import type { ImportWork } from './import-work.ts';
import type { JobTokens, Plan, PlannedJob } from './plan.ts';

type JobAnswer = z.output<TenantEndpoints['POST /api/imports/jobs']['answer']>;

export function rejectFaults(faults: readonly Fault[]): void {
  if (faults.length === 0) return;
  throw new MillraceError('bad_document', `${count(faults.length, 'fault')}; nothing was imported`, { faults });
}

interface Imported {
  readonly jobs: readonly JobResult[];
  readonly faults: readonly Fault[];
}

/**
 * Imports jobs that others refer to first. Jobs that refer to each other are imported without the references that lead to later
 * ones, and once more when these are here.
 */
export async function importJobs(
  work: ImportWork,
  tokens: ReadonlyMap<string, JobTokens>,
  { dryRun }: { dryRun: boolean },
): Promise<Imported> {
  const { plan, progress } = work;
  const planned = new Map(plan.jobs.map((job) => [job.definition, job]));
  const ordered = inOrder(plan.jobs.map(({ definition, key }) => ({ source: key, job: definition })));
  const results = new Map<PlannedJob, JobResult>();
  const faults: Fault[] = [];
  const again: PlannedJob[] = [];
  for (const [i, { job: definition }] of ordered.entries()) {
    const job = planned.get(definition) as PlannedJob;
    const { answer, faults: found } = await importJob(work, job, {
      tokens: tokens.get(job.id),
      dryRun,
      leaveMissing: true,
    });
    faults.push(...found);
    if (answer === undefined) continue;
    results.set(job, resultOf(job, tokens.get(job.id), answer));
    faults.push(...missingFrom(plan, job, answer.missing));
    if (answer.missing.length > 0) again.push(job);
    progress(
      `${dryRun ? 'checked' : 'imported'} ${i + 1} of ${count(ordered.length, 'job')}`,
      i + 1 === ordered.length,
    );
  }
  if (!dryRun) {
    for (const job of again) {
      const { faults: found } = await importJob(work, job, { tokens: tokens.get(job.id), dryRun, leaveMissing: false });
      rejectFaults(found);
    }
  }
  return { jobs: plan.jobs.flatMap((job) => results.get(job) ?? []), faults };
}

interface How {
  readonly tokens: JobTokens | undefined;
  readonly dryRun: boolean;
  readonly leaveMissing: boolean;
}

async function importJob(
  { server, options, plan }: ImportWork,
  { key, project, paused, text, triggers }: PlannedJob,
  { tokens, dryRun, leaveMissing }: How,
): Promise<{ readonly answer?: JobAnswer; readonly faults: readonly Fault[] }> {
  const { config, ...rest } = project;
  const body = {
    dry_run: dryRun,
    overwrite: options.overwrite,
    project: { ...rest, ...(config !== null && { config }) },
    document: text,
    resume: !paused,
    // pausing all jobs is how one stops Waterwheel from firing, and says nothing about any of them
    keep_resume: options.start || plan.jobs.every((job) => job.paused),
    outlook: options.dryRun,
    leave_missing: leaveMissing,
    triggers: triggers.map(({ name, earliest, latest }) => ({ name, earliest: wire(earliest), latest: wire(latest) })),
    tokens: [...groupBy(tokens?.tokens ?? [], ({ task }) => task)].map(([task, some]) => ({
      task,
      instants: some.map(({ instant }) => instant.toISOString()),
      counts: some.map(({ count: n }) => n),
    })),
  };
  try {
    return { answer: await server.tenant('POST /api/imports/jobs', { body }), faults: [] };
  } catch (error) {
    if (!(error instanceof CallFailed)) throw error;
    // the engine of the tenant is older than this command
    if (error.status === 404)
      throw new MillraceError('not_supported', `tenant ${server.tenantName} cannot import; ${upgrade}`);
    if (!documentStatuses.has(error.status)) throw error;
    const faults = error.problem?.faults ?? [];
    const found = faults.length > 0 ? faults : [{ path: '', message: error.message }];
    return { faults: found.map(({ path, message }) => ({ path: path === '' ? key : `${key}: ${path}`, message })) };
  }
}

const upgrade = 'upgrade it first: millrace tenant upgrade';

/** The document has faults, or something here stands in its way. */
const documentStatuses: ReadonlySet<number> = new Set([400, 409, 413]);

const wire = (at: Date | null): string | null => at?.toISOString() ?? null;

/** References that lead neither to what is here nor to what is imported. */
function missingFrom(plan: Plan, { key, definition }: PlannedJob, missing: readonly Fault[]): Fault[] {
  const jobs = new Map(plan.jobs.map((job) => [job.key, job.definition]));
  return missing.flatMap(({ path, message }) => {
    const reference = definition.foreignReferences.find((each) => each.path === path)?.reference;
    const target = reference && jobs.get(`${reference.project}/${reference.job}`);
    if (reference !== undefined && target !== undefined && hasPart(target, reference)) return [];
    return [
      {
        path: `${key}: ${path}`,
        message: `${message}; import its project, too, or correct the document in Waterwheel`,
      },
    ];
  });
}

function resultOf(job: PlannedJob, tokens: JobTokens | undefined, answer: JobAnswer): JobResult {
  const { missing: _, ...rest } = answer;
  const dropped =
    tokens !== undefined && tokens.dropped > 0
      ? [
          `${count(tokens.dropped, 'token')} with a negative count, or of a task that the document does not name, left out`,
        ]
      : [];
  const notes = [...job.notes, ...dropped];
  return { ...rest, project: job.project.name, name: job.name, paused_in_waterwheel: job.paused, notes };
}
