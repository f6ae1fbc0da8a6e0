/** Data of the list of jobs: the jobs themselves, and what their runs did in the last hour. */
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { type TenantAnswer, tenant } from '../client.ts';
import { keys } from '../queries.ts';

type JobPageAnswer = Extract<TenantAnswer<'GET /api/jobs'>, { items: unknown }>;
export type JobRow = JobPageAnswer['items'][number];
export type Activity = TenantAnswer<'GET /api/projects/{id}/jobs'>[number];

const pageSize = 1_000;
const mostPages = 5;
/** The API counts per project; the list asks for as many as can be on a screen. */
const mostProjects = 12;

/** Every job, so that the filter finds what is there; `more` when there are too many even for that. */
async function readJobs(signal: AbortSignal): Promise<{ jobs: readonly JobRow[]; more: boolean }> {
  const jobs: JobRow[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < mostPages; page++) {
    const answer = await tenant('GET /api/jobs', { query: { limit: pageSize, cursor }, signal });
    if (!('items' in answer)) break;
    jobs.push(...answer.items);
    if (answer.next === null) return { jobs, more: false };
    cursor = answer.next;
  }
  return { jobs, more: true };
}

export function useJobs() {
  return useQuery({ queryKey: keys.jobs, queryFn: ({ signal }) => readJobs(signal) });
}

async function readActivity(projects: readonly string[], signal: AbortSignal): Promise<ReadonlyMap<string, Activity>> {
  const read = (id: string) =>
    tenant('GET /api/projects/{id}/jobs', { params: { id }, query: { limit: pageSize }, signal });
  const rows = (await Promise.all(projects.map(read))).flat();
  return new Map(rows.map((row) => [row.job_id, row]));
}

/** By job id; jobs it does not hold are not counted. */
export function useActivity(jobs: readonly JobRow[]): ReadonlyMap<string, Activity> {
  const projects = [...new Set(jobs.map((job) => job.project_id))].slice(0, mostProjects);
  const query = useQuery({
    queryKey: [...keys.activity, projects],
    queryFn: ({ signal }) => readActivity(projects, signal),
    enabled: projects.length > 0,
    placeholderData: keepPreviousData,
  });
  return query.data ?? new Map<string, Activity>();
}

/** Jobs whose project, name or description holds every word of the question. */
export function matching(jobs: readonly JobRow[], question: string): readonly JobRow[] {
  const words = question.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return jobs;
  return jobs.filter((job) => {
    const text = `${job.project}/${job.name} ${job.description}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
}
