/** All endpoints of executions. */
import { forkEndpoints } from './fork/endpoints.ts';
import { executionHistoryEndpoints } from './history/endpoints.ts';
import { launchEndpoints } from './launch/endpoints.ts';
import { operateEndpoints } from './operate/endpoints.ts';
import { patchEndpoints } from './patch/endpoints.ts';
import { executionViewEndpoints } from './views/endpoints.ts';

export const executionEndpoints = {
  ...launchEndpoints,
  ...executionViewEndpoints,
  ...executionHistoryEndpoints,
  ...operateEndpoints,
  ...patchEndpoints,
  ...forkEndpoints,
};
