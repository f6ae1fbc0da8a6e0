/** All handlers of executions. */
import { executionHistoryHandlers } from './history/handlers.ts';
import { forkHandlers } from './fork/handlers.ts';
import { launchHandlers } from './launch/handlers.ts';
import { operateHandlers } from './operate/handlers.ts';
import { patchHandlers } from './patch/handlers.ts';
import { executionViewHandlers } from './views/handlers.ts';

export const executionHandlers = {
  ...launchHandlers,
  ...executionViewHandlers,
  ...executionHistoryHandlers,
  ...operateHandlers,
  ...patchHandlers,
  ...forkHandlers,
};
