/** Queries of workers, of one worker with its runs, and of schedulers. */
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { pageIn } from '../../../src/http/client.ts';
import { listAll, type TenantAnswer, tenant } from '../client.ts';
import { keys } from '../queries.ts';

export type Worker = Omit<TenantAnswer<'GET /api/workers/{id}'>, 'tasks'>;
export type WorkerRun = TenantAnswer<'GET /api/workers/{id}'>['tasks'][number];
export type Scheduler = TenantAnswer<'GET /api/schedulers'>[number];

export function useWorkers() {
  return useQuery({
    queryKey: [...keys.fleet, 'workers'],
    queryFn: async ({ signal }): Promise<readonly Worker[]> => {
      const { items } = await listAll<Worker>(async (cursor, limit) =>
        pageIn(await tenant('GET /api/workers', { query: { cursor, limit }, signal })),
      );
      return items;
    },
  });
}

/** A worker with its latest runs, of the given states or of all. */
export function useWorker(id: string, state: string | undefined) {
  return useQuery({
    queryKey: [...keys.fleet, 'worker', id, state],
    queryFn: ({ signal }) => tenant('GET /api/workers/{id}', { params: { id }, query: { state }, signal }),
    placeholderData: keepPreviousData,
  });
}

export function useSchedulers() {
  return useQuery({
    queryKey: [...keys.fleet, 'schedulers'],
    queryFn: ({ signal }) => tenant('GET /api/schedulers', { signal }),
  });
}

/** The full name of a trigger; it changes only with the job's document. */
export function useTriggerName(job: string, trigger: string) {
  return useQuery({
    queryKey: keys.jobWritten(job, 'trigger name', trigger),
    queryFn: async ({ signal }) => {
      const found = await tenant('GET /api/triggers/{id}', { params: { id: trigger }, query: { limit: 1 }, signal });
      return `${found.project_name}/${found.job_name}, ${found.trigger_name}`;
    },
  });
}
