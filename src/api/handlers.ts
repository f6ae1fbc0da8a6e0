/** All handlers of a tenant's endpoints, except those for job documents (apply.ts). */
import { activityHandlers } from './overview/activity.ts';
import { answerHandlers } from './answers/handlers.ts';
import { auditOf } from './audit/handlers.ts';
import { backfillHandlers } from './backfills/handlers.ts';
import { busSubscriberHandlers } from './bus/handlers.ts';
import { changeHandlers } from './live/changes.ts';
import type { ApiHandlers } from './context.ts';
import type { TenantEndpoints } from './endpoints.ts';
import { eventHandlers } from './live/events.ts';
import { executionHandlers } from './executions/handlers.ts';
import { flowHandlers } from './flows/handlers.ts';
import { explainHandlers } from './explain/handlers.ts';
import { fleetHandlers } from './fleet/handlers.ts';
import { importHandlers } from './imports/handlers.ts';
import { instantHandlers } from './instants/handlers.ts';
import { jobViewHandlers } from './jobs/views.ts';
import { jobHandlers } from './jobs/handlers.ts';
import { logHandlers } from './runs/logs.ts';
import { overviewHandlers } from './overview/handlers.ts';
import { poolHandlers } from './pools/handlers.ts';
import { projectHandlers } from './projects/handlers.ts';
import { runViewHandlers } from './runs/views.ts';
import { runHandlers } from './runs/handlers.ts';
import { resultHandlers } from './runs/results.ts';
import { search } from './overview/search.ts';
import { stashHandlers } from './stash/handlers.ts';
import { taskHandlers } from './tasks/handlers.ts';
import { tokenHandlers } from './instants/tokens.ts';
import { errandHandlers } from './errands/handlers.ts';
import { topicHandlers } from './bus/topics/handlers.ts';
import { triggerHandlers } from './triggers/handlers.ts';
import { workitemHandlers } from './workitems/handlers.ts';

export type DocumentKeys = 'POST /api/jobs' | 'PUT /api/jobs' | 'POST /api/jobs/check' | 'GET /api/jobs/schema';

export const apiHandlers: ApiHandlers<Omit<TenantEndpoints, DocumentKeys>> = {
  ...projectHandlers,
  ...jobHandlers,
  ...jobViewHandlers,
  ...tokenHandlers,
  ...instantHandlers,
  ...backfillHandlers,
  ...taskHandlers,
  ...triggerHandlers,
  ...runHandlers,
  ...resultHandlers,
  ...runViewHandlers,
  ...logHandlers,
  ...eventHandlers,
  ...changeHandlers,
  ...poolHandlers,
  ...fleetHandlers,
  ...stashHandlers,
  ...explainHandlers,
  'GET /api/search': search,
  'GET /api/audit': auditOf,
  ...overviewHandlers,
  ...activityHandlers,
  ...busSubscriberHandlers,
  ...topicHandlers,
  ...errandHandlers,
  ...answerHandlers,
  ...flowHandlers,
  ...executionHandlers,
  ...workitemHandlers,
  ...importHandlers,
};
