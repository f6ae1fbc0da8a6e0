/** All handlers of executions. */
import { MillraceError } from '../../errors.ts';
import type { ApiHandlers } from '../context.ts';
import { executionEndpoints } from './endpoints.ts';
import { workitemEndpoints } from '../workitems/endpoints.ts';
import { flowEndpoints } from '../flows/endpoints.ts';

const all = { ...flowEndpoints, ...executionEndpoints, ...workitemEndpoints };

/** For now: the shapes are there, the handlers are not. */
export const executionHandlers = Object.fromEntries(
  Object.keys(all).map((key) => [
    key,
    async () => {
      throw new MillraceError('not_supported', 'is not built yet');
    },
  ]),
) as unknown as ApiHandlers<typeof all>;
