/** The search: projects, jobs, tasks and triggers by words in their names, the best first; or any object by id. */
import type { Input } from '../../http/endpoint.ts';
import { isId } from '../../kernel/id.ts';
import type { ApiContext } from '../context.ts';
import type { overviewEndpoints } from './endpoints.ts';
import { findWorkers } from '../explain/fleet.ts';
import { escapeLike, patternsOf } from './name-search.ts';
import { findById, findByWords, type HitRow } from './search-queries.ts';

type Asked = Input<(typeof overviewEndpoints)['GET /api/search']>;

export async function search({ query: { q, limit } }: Asked, ctx: ApiContext) {
  if (isId(q)) return { items: await findAnyById(ctx, q) };
  // a slash separates words, as in the reference project/job/task
  const words = q.split(/[\s/]+/).filter((word) => word !== '');
  if (words.length === 0) return { items: [] };
  const rows = await findByWords(ctx.db, {
    text: q,
    patterns: patternsOf(words),
    prefix: `${escapeLike(q)}%`,
    wordStart: `(^|[^[:alnum:]])${q.replaceAll(/[^\p{L}\p{N}\s]/gu, '\\$&')}`,
    limit,
  });
  return { items: rows.map(renderHit) };
}

async function findAnyById(ctx: ApiContext, id: string) {
  const [rows, { known }] = await Promise.all([findById(ctx.db, id), findWorkers(ctx)]);
  const workers = known.filter((worker) => worker.id === id.toLowerCase());
  return [
    ...rows.map(renderHit),
    ...workers.map(({ name }) => ({ kind: 'worker' as const, id: id.toLowerCase(), name, job: null, project: null })),
  ];
}

function renderHit({ kind, id, name, job_id, job_name, project_id, project_name }: HitRow) {
  const job = job_id === null ? null : { id: job_id, name: job_name ?? '', project: project_name ?? '' };
  const project = project_id === null ? null : { id: project_id, name: project_name ?? '' };
  return { kind, id, name, job, project };
}
