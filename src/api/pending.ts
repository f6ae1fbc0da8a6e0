/** Endpoints whose handlers are on their way. Each leaves this list as it is built. */
import { MillraceError } from '../errors.ts';
import type { ApiHandlers } from './context.ts';
import type { TenantEndpoints } from './endpoints/table.ts';

const notYet = async (): Promise<never> => {
  throw new MillraceError('internal', 'not built yet');
};

type Pending =
  | 'GET /api/overview'
  | 'GET /api/activity'
  | 'GET /api/search'
  | 'GET /api/jobs/overview'
  | 'GET /api/jobs/{id}/grid'
  | 'GET /api/jobs/{id}/firings'
  | 'GET /api/runs/{id}/history'
  | 'GET /api/runs/{id}/attempts'
  | 'GET /api/runs/{id}/environment'
  | 'GET /api/audit';

export const pendingHandlers: ApiHandlers<Pick<TenantEndpoints, Pending>> = {
  'GET /api/overview': notYet,
  'GET /api/activity': notYet,
  'GET /api/search': notYet,
  'GET /api/jobs/overview': notYet,
  'GET /api/jobs/{id}/grid': notYet,
  'GET /api/jobs/{id}/firings': notYet,
  'GET /api/runs/{id}/history': notYet,
  'GET /api/runs/{id}/attempts': notYet,
  'GET /api/runs/{id}/environment': notYet,
  'GET /api/audit': notYet,
};
