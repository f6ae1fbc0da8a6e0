/** Requests explanations from a tenant's API, and adds the workers and schedulers that they mention. */
import type { ReasonCode } from '../../src/api/explain/endpoints.ts';
import type { Explanation } from '../../src/api/explain/findings.ts';
import type { WorkerInfo } from '../../src/contract/context.ts';
import { newId } from '../../src/kernel/id.ts';
import { type ClaimedRow, claim } from './runs.ts';
import type { TenantApi } from './tenant-api.ts';

export const whyRun = (api: TenantApi, id: string): Promise<Explanation> =>
  api.call('GET /api/explain/run/{id}', { params: { id } });

export const whyToken = (api: TenantApi, task: string | undefined, instant?: string): Promise<Explanation> =>
  api.call('GET /api/explain/token/{id}', { params: { id: instant === undefined ? `${task}` : `${task}@${instant}` } });

export const whyTrigger = (api: TenantApi, id: string | undefined, instant?: string): Promise<Explanation> =>
  api.call('GET /api/explain/trigger/{id}', { params: { id: id ?? '' }, query: { instant } });

/** An expected explanation: the reason code and a part of its message. */
export interface Why {
  readonly code: ReasonCode;
  readonly when: string;
  readonly ask: () => Promise<Explanation>;
  readonly says: string;
  /** Whether this reason must come first, so that the summary gives it. */
  readonly first?: boolean;
}

export function aliveWorker(api: TenantApi, more: Partial<WorkerInfo> = {}): WorkerInfo {
  const worker = {
    id: newId(),
    name: 'box7',
    addr: '',
    version: '1',
    lastSeenAt: new Date(api.ctx.time.now()),
    running: 0,
    places: 8,
    runtimes: ['none'],
    queues: ['default'],
    ...more,
  };
  api.workers.push(worker);
  return worker;
}

export function aliveScheduler(api: TenantApi): void {
  const lastSeenAt = new Date(api.ctx.time.now());
  api.schedulers.splice(0, Infinity, { id: newId(), version: '1', lastSeenAt, queuedTriggers: 0, nextTriggerId: null });
}

/** Claims all ready runs; returns those of this task. */
export async function claimTask(api: TenantApi, task: string | undefined): Promise<ClaimedRow[]> {
  const runs = await claim(api, 100);
  return runs.filter((run) => run.task_id === task);
}
