/** Jobs for the web interface: the overview, the grid of instants and tasks, the next firings. */
import type { ApiHandlers } from '../context.ts';
import type { jobViewEndpoints } from './view-endpoints.ts';
import { firingsOf } from './firings.ts';
import { gridOf } from './grid.ts';
import { overviewOfJobs } from './overview.ts';

export const jobViewHandlers: ApiHandlers<typeof jobViewEndpoints> = {
  'GET /api/jobs/overview': overviewOfJobs,
  'GET /api/jobs/{id}/grid': gridOf,
  'GET /api/jobs/{id}/firings': firingsOf,
};
