/** All projects, by name: the list answers a page at a time. */
import { pageAfterLast } from '../../../src/http/client.ts';
import { listAll, tenant } from '../client.ts';

export interface Project {
  readonly id: string;
  readonly name: string;
  readonly description: string;
}

export async function fetchProjects(signal: AbortSignal): Promise<readonly Project[]> {
  const { items } = await listAll<Project>(async (after, limit) => {
    const answer = await tenant('GET /api/projects', { query: { after, limit }, signal });
    return pageAfterLast([answer].flat(), limit);
  });
  return items;
}
