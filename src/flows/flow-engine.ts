/** The engine's part that drives flows (`contract/flows.ts`). */
import type { FlowEngine } from '../contract/flows.ts';
import { execute } from './executions/revisions/execute.ts';
import { acceptMessages, readWaiting } from './executions/inbox.ts';
import { blankExecutions } from './executions/launch.ts';
import { fetchExecutions } from './executions/load.ts';
import { put, settle } from './executions/commits/put.ts';
import { readDue, readOrphans, readUnfinished, readUnhosted } from './executions/takeover.ts';

export const flowEngine: FlowEngine = {
  fetch: fetchExecutions,
  blank: blankExecutions,
  execute,
  put,
  settle,
  accept: acceptMessages,
  waiting: readWaiting,
  due: readDue,
  orphans: readOrphans,
  unhosted: readUnhosted,
  unfinished: readUnfinished,
};
