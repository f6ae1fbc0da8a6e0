/** What a task may know about its own run, put together from the hand-out and the definition. */
import { defaultTenant } from '../../contract/tenants.ts';
import type { ClaimedRun, TaskDefinition } from '../../contract/wire.ts';
import type { RunFacts } from '../contract.ts';

/** `url`: where the task reaches the API. */
export function factsOf(
  run: Omit<ClaimedRun, 'engine' | 'version'>,
  definition: TaskDefinition,
  url: string,
): RunFacts {
  const { tenant_name: tenant, run: runId, lease, instant, attempt, priority, credential } = run;
  const { job, project } = definition;
  const params = { ...definition.params, ...run.params };
  const handOut = { tenant, run: runId, lease, credential, url: baseOf(url, tenant), idempotencyKey: runId };
  return {
    ...handOut,
    instant,
    attempt,
    priority,
    params,
    task: { id: run.task, name: definition.name },
    job,
    project,
  };
}

/** Where the paths of a tenant begin. */
function baseOf(url: string, tenant: string): string {
  return tenant === defaultTenant ? url : `${url}/t/${encodeURIComponent(tenant)}`;
}
