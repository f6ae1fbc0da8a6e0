/** The overview of jobs: running and queued runs, the latest instants, the next firing. */
import type { Input } from '../../http/endpoint.ts';
import type { ApiContext } from '../context.ts';
import type { jobViewEndpoints } from './view-endpoints.ts';
import { instantState, isMoving, tallyStates } from '../instants/handlers.ts';
import {
  countGlances,
  type GlanceRow,
  listFailingJobs,
  listGlances,
  listRecent,
  listWork,
  type RecentRow,
  type WorkRow,
} from './overview-queries.ts';
import { readCursor, writeCursor } from './handlers.ts';
import { groupBy } from '../../kernel/group-by.ts';
import { wordsOf } from '../overview/name-search.ts';
import { nextFirings } from '../triggers/handlers.ts';

type Asked = Input<(typeof jobViewEndpoints)['GET /api/jobs/overview']>;

const maxInstants = 16;
/** Maximum tokens of a page. With 5 million old runs, 1,000 tokens took 14 ms (measured). */
const maxTokens = 2_000;

export async function overviewOfJobs({ query }: Asked, ctx: ApiContext) {
  const { project, show, limit, cursor } = query;
  const isFailing = show === 'failing';
  const among = isFailing ? await listFailingJobs(ctx.db) : undefined;
  const filter = { words: wordsOf(query.q ?? ''), project, show: isFailing ? ('all' as const) : show, among };
  const after = cursor === undefined ? undefined : readCursor(cursor);
  const [rows, total] = await Promise.all([
    listGlances(ctx.db, { ...filter, after, limit: limit + 1 }),
    countGlances(ctx.db, filter),
  ]);
  const page = rows.slice(0, limit);
  const last = page.at(-1);
  const next = rows.length > limit && last ? writeCursor([last.project, last.name]) : null;
  return { items: await glances(ctx, page), next, total };
}

async function glances(ctx: ApiContext, rows: readonly GlanceRow[]) {
  const jobs = rows.map((row) => row.id);
  const [work, next] = await Promise.all([listWork(ctx.db, jobs), nextFirings(ctx, jobs)]);
  const recent = groupBy(await listRecent(ctx.db, sharesOf(work)), (row) => row.job_id);
  const ofJob = new Map(work.map((row) => [row.job_id, row]));
  return rows.map(({ project_id, project: project_name, ...job }) => {
    const { tasks = 0, running = 0, queued = 0 } = ofJob.get(job.id) ?? {};
    const project = { id: project_id, name: project_name };
    const instants = (recent.get(job.id) ?? []).map(renderInstant);
    return { ...job, project, tasks, running, queued, next: next.get(job.id) ?? null, recent: instants };
  });
}

/**
 * Decides how many instants of each job are shown. Each job gets one, smallest jobs first. The remaining tokens are shared
 * equally, and larger jobs get what smaller ones do not need.
 */
export function sharesOf(work: readonly Pick<WorkRow, 'job_id' | 'tasks'>[]): { job: string; instants: number }[] {
  const bySize = work.filter(({ tasks }) => tasks > 0).toSorted((a, b) => a.tasks - b.tasks);
  const shown: { job: string; tasks: number; instants: number }[] = [];
  let left = maxTokens;
  for (const { job_id: job, tasks } of bySize) {
    if (tasks > left) break;
    left -= tasks;
    shown.push({ job, tasks, instants: 1 });
  }
  return shown.map(({ job, tasks }, i) => {
    const more = Math.min(maxInstants - 1, Math.floor(left / (shown.length - i) / tasks));
    left -= more * tasks;
    return { job, instants: 1 + more };
  });
}

function renderInstant({ instant, states, started_at, finished_at }: RecentRow) {
  const state = instantState(tallyStates(states));
  const isOver = started_at !== null && finished_at !== null && !isMoving(state);
  const seconds = isOver ? Math.max(0, finished_at.getTime() - started_at.getTime()) / 1_000 : null;
  return { instant: instant.toISOString(), state, seconds };
}
