/** What a task may know about its own run, put together from the hand-out and the definition. */
import { defaultTenant } from '../../contract/tenants.ts';
import type { ClaimedRun, TaskDefinition } from '../../contract/wire.ts';

interface Named {
  readonly id: string;
  readonly name: string;
}

/** What a task may know about its own run. */
export interface RunFacts {
  /** Its name. */
  readonly tenant: string;
  readonly run: string;
  readonly lease: number;
  /** ISO 8601, UTC. */
  readonly instant: string;
  readonly attempt: number;
  readonly priority: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly task: Named;
  readonly job: Named;
  readonly project: Named;
  /** Where the task reaches the API, and with what. */
  readonly url: string;
  readonly credential: string;
  /** The same for every hand-out of a run, so that an outside world that saw a start twice can tell. */
  readonly idempotencyKey: string;
}

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
