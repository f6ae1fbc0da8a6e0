/**
 * The names under which answers are cached, and the cache itself. An answer stays good until a digest of changes says
 * otherwise (`live/touched.ts`), so a page that is opened again shows at once what it showed before.
 *
 * What runs do touches `state` names, several times a second where much runs; what people write touches `written` ones.
 * A page asks for the two apart, so that a busy job does not have its document read over and over.
 */
import { MutationCache, QueryCache, QueryClient, type QueryKey } from '@tanstack/react-query';
import { statusOf } from './client.ts';

export const keys = {
  me: ['me'],
  installation: ['installation'],
  overview: ['overview'],
  activity: ['activity'],
  jobs: ['jobs'],
  projects: ['projects'],
  search: ['search'],
  runs: ['runs'],
  backfills: ['backfills'],
  fleet: ['fleet'],
  audit: ['audit'],
  accessKeys: ['access keys'],
  pools: ['pools'],
  stash: ['stash'],
  /** How a job fares: counts, tokens, runs, durations. */
  jobState: (job: string, ...more: readonly unknown[]): QueryKey => ['job state', job, ...more],
  /** What is written about a job: document, graph, versions, triggers. */
  jobWritten: (job: string, ...more: readonly unknown[]): QueryKey => ['job written', job, ...more],
  run: (id: string, ...more: readonly unknown[]): QueryKey => ['run', id, ...more],
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
