/** The query cache: which requests are retried, and what happens when the session ends. */
import { MutationCache, QueryCache, QueryClient } from '@tanstack/react-query';
import { isDatabaseFault, statusOf } from './client.ts';
import { keys } from './queries.ts';

const retriesOnTrouble = 2;

/**
 * Retries requests without an answer and server errors; refusals are final. A fault of the database is shown at once, and
 * `tenants/access.tsx` has everything read again when it is over.
 */
function mayRetry(failures: number, error: Error): boolean {
  if (isDatabaseFault(error)) return false;
  const status = statusOf(error);
  return (status === undefined || status >= 500) && failures < retriesOnTrouble;
}

export function makeQueryClient(): QueryClient {
  // the next request notices that the session has ended; reading `/api/me` then leads to the sign-in page
  const noticeSignOut = (error: Error): void => {
    if (statusOf(error) === 401) void client.invalidateQueries({ queryKey: keys.me });
  };
  const client: QueryClient = new QueryClient({
    queryCache: new QueryCache({
      onError: (error, query) => {
        if (query.queryKey[0] !== keys.me[0]) noticeSignOut(error);
      },
    }),
    mutationCache: new MutationCache({ onError: noticeSignOut }),
    defaultOptions: { queries: { retry: mayRetry, staleTime: 30_000 }, mutations: { retry: false } },
  });
  return client;
}
