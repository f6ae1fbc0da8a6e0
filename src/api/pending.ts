/** Endpoints whose handlers are on their way. Each leaves this list as it is built. */
import { MillraceError } from '../errors.ts';
import type { ApiHandlers } from './context.ts';
import type { TenantEndpoints } from './endpoints/table.ts';

const notYet = async (): Promise<never> => {
  throw new MillraceError('internal', 'not built yet');
};

type Pending = 'GET /api/overview' | 'GET /api/activity' | 'GET /api/audit';

export const pendingHandlers: ApiHandlers<Pick<TenantEndpoints, Pending>> = {
  'GET /api/overview': notYet,
  'GET /api/activity': notYet,
  'GET /api/audit': notYet,
};
