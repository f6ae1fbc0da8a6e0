/**
 * The names under which answers are cached, and the cache itself. An answer stays good until an event says otherwise
 * (`live/touched.ts`), so a page that is opened again shows at once what it showed before.
 */
import { MutationCache, QueryCache, QueryClient } from '@tanstack/react-query';
import { statusOf } from './client.ts';

export const keys = {
  me: ['me'],
  jobs: ['jobs'],
  activity: ['activity'],
  job: (id: string) => ['job', id],
  runsOf: (job: string, filter: object) => ['job', job, 'runs', filter],
  graph: (job: string) => ['graph', job],
  run: (id: string) => ['run', id],
} as const;

const retriesOnTrouble = 2;

/** Another try may help when nobody answered or the server stumbled; a refusal stays a refusal. */
function mayRetry(failures: number, error: Error): boolean {
  const status = statusOf(error);
  return (status === undefined || status >= 500) && failures < retriesOnTrouble;
}

export function makeQueryClient(): QueryClient {
  // a session that ended is found out by whatever is asked next: asking who we are brings the sign-in page
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
