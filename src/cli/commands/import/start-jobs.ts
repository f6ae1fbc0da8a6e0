/** Starts imported jobs, each together with its retries. */
import { maxJobs, maxRetries } from '../../../api/imports/endpoints.ts';
import type { SourceRetry } from '../../../waterwheel/source.ts';
import type { ImportReport, JobResult } from './import-report.ts';
import type { ImportWork } from './import-work.ts';

/** Retries of a job go with it, so that it is started with all of them or not at all. */
export async function startJobs(
  { server, options }: ImportWork,
  jobs: readonly JobResult[],
  retries: readonly SourceRetry[],
): Promise<NonNullable<ImportReport['start']>> {
  const names = new Map(jobs.map((job) => [job.id, `${job.project}/${job.name}`]));
  const wanted = jobs.filter(({ outcome }) => outcome !== 'conflict').map(({ id }) => id);
  const known = new Set(wanted);
  const theirs = retries.filter(({ job }) => known.has(job));
  if (options.dryRun) {
    const resumed = jobs.filter(({ id, resumes }) => known.has(id) && resumes).map(({ id }) => names.get(id) ?? id);
    return { started: resumed, paused: [], retries: theirs.length };
  }
  const started: string[] = [];
  const paused: string[] = [];
  for (const some of chunksOf(wanted, theirs)) {
    const ids = new Set(some);
    const body = {
      jobs: some,
      retries: theirs
        .filter(({ job }) => ids.has(job))
        .map(({ instant, due, ...rest }) => ({
          ...rest,
          priority: rest.priority as 'normal',
          instant: instant.toISOString(),
          due: due.toISOString(),
        })),
    };
    const answer = await server.tenant('POST /api/imports/start', { body });
    started.push(...answer.started);
    paused.push(...answer.paused);
  }
  const named = (ids: readonly string[]): string[] => ids.map((id) => names.get(id) ?? id);
  return { started: named(started), paused: named(paused), retries: theirs.length };
}

/** Jobs that fit into one request together with their retries. */
function chunksOf(jobs: readonly string[], retries: readonly SourceRetry[]): string[][] {
  const counts = new Map<string, number>();
  for (const { job } of retries) counts.set(job, (counts.get(job) ?? 0) + 1);
  const chunks: string[][] = [];
  let left = 0;
  for (const job of jobs) {
    const needed = counts.get(job) ?? 0;
    const chunk = chunks.at(-1);
    if (chunk === undefined || chunk.length === maxJobs || needed > left) {
      chunks.push([job]);
      left = maxRetries - needed;
    } else {
      chunk.push(job);
      left -= needed;
    }
  }
  return chunks;
}
