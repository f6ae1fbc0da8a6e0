/** Imports stash values, many in one request. */
import { maxEntries } from '../../../api/imports/endpoints.ts';
import type { SourceStash } from '../../../waterwheel/source.ts';
import { count } from '../../print/output.ts';
import type { ImportReport, JobResult, ProjectResult } from './import-report.ts';
import type { ImportWork } from './import-work.ts';
import type { Plan } from './plan.ts';

/** Bytes of values in one request; a larger value has a request of its own. */
const maxBatchBytes = 2 * 1024 * 1024;

function inBatches(entries: readonly SourceStash[]): SourceStash[][] {
  const batches: SourceStash[][] = [];
  let bytes = Number.POSITIVE_INFINITY;
  for (const entry of entries) {
    const batch = batches.at(-1);
    if (batch === undefined || batch.length === maxEntries || bytes + entry.bytes > maxBatchBytes) {
      batches.push([entry]);
      bytes = entry.bytes;
    } else {
      batch.push(entry);
      bytes += entry.bytes;
    }
  }
  return batches;
}

interface Owners {
  readonly projects: readonly ProjectResult[];
  readonly jobs: readonly JobResult[];
}

export async function importStash(
  { plan, server, source, options, progress }: ImportWork,
  owners: Owners,
): Promise<ImportReport['stash']> {
  const entries = plan.stash.filter(makeFilter(plan, owners));
  const total = {
    written: 0,
    unchanged: 0,
    kept: 0,
    skipped: plan.stash.length - entries.length,
    conflicts: [] as string[],
  };
  const names = new Map(plan.projects.map(({ id, name }) => [id, name]));
  // a project that was here before has another id
  const idsHere = new Map(plan.projects.map(({ id }, i) => [id, owners.projects[i]?.id ?? id]));
  let done = 0;
  for (const batch of inBatches(entries)) {
    const values = await source.values(batch);
    const body = {
      dry_run: options.dryRun,
      overwrite: options.overwrite,
      entries: batch.map(({ project, job, instant, name }, i) => ({
        project: project === null ? null : (idsHere.get(project) ?? project),
        job,
        instant: instant?.toISOString() ?? null,
        name,
        data: values[i]?.toString('base64') ?? '',
      })),
    };
    const answer = await server.tenant('POST /api/imports/stash', { body });
    total.written += answer.written;
    total.unchanged += answer.unchanged;
    total.kept += answer.kept;
    for (const i of answer.conflicts) {
      const entry = batch[i];
      total.conflicts.push(`${entry?.project == null ? 'global' : names.get(entry.project)}: ${entry?.name}`);
    }
    done += batch.length;
    const verb = options.dryRun ? 'checked' : 'imported';
    progress(`${verb} ${done} of ${count(entries.length, 'stash value')}`, done === entries.length);
  }
  return total;
}

/** Leaves out values of jobs with conflicts, and of projects that are not here under their id, or are others here. */
function makeFilter(plan: Plan, { projects, jobs }: Owners): (entry: SourceStash) => boolean {
  const isHere = (id: string, i: number): boolean => projects[i]?.outcome !== 'conflict' || projects[i].id === id;
  const here = new Set(plan.projects.flatMap(({ id }, i) => (isHere(id, i) ? [id] : [])));
  const left = new Set(jobs.filter(({ outcome }) => outcome === 'conflict').map(({ id }) => id));
  return ({ project, job }) => (project === null || here.has(project)) && (job === null || !left.has(job));
}
