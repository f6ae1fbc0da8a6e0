/** The facts about a run that its task gets, from the hand-out and the definition. */
import { defaultTenant } from '../../contract/tenants.ts';
import type { ClaimedRun, NodeWork, TaskDefinition, TaskRun } from '../../contract/wire.ts';

interface Named {
  readonly id: string;
  readonly name: string;
}

/** The facts that runs of tasks and of nodes have. */
interface HandOutFacts {
  /** The name of the tenant. */
  readonly tenant: string;
  readonly run: string;
  readonly lease: number;
  readonly attempt: number;
  readonly priority: string;
  readonly params: Readonly<Record<string, unknown>>;
  /** The API's address for the task, and its credential. */
  readonly url: string;
  readonly credential: string;
  /** The same for every hand-out of a run, so that an external system can recognize a repeated start. */
  readonly idempotencyKey: string;
}

/** A run of a job's task, at an instant. */
export interface TaskFacts extends HandOutFacts {
  /** ISO 8601, UTC. */
  readonly instant: string;
  readonly task: Named;
  readonly job: Named;
  readonly project: Named;
  readonly node: null;
}

/** A run of a node of an execution. */
export interface NodeFacts extends HandOutFacts {
  readonly instant: null;
  readonly task: null;
  readonly job: null;
  readonly project: Named | null;
  readonly node: Named & { readonly execution: string };
}

export type RunFacts = TaskFacts | NodeFacts;

/** A call of a function by a conductor. It is no run: it has no credential, and its answer goes to the execution. */
export interface CallFacts {
  /** The name of the tenant. */
  readonly tenant: string;
  /** The same for every repetition of the call: pass it on as an idempotency key. */
  readonly key: string;
  /** 1 is the first. */
  readonly attempt: number;
  /** Ids of the execution and of its node, and the name of the flow. */
  readonly execution: string;
  readonly node: string;
  readonly flow: string;
}

/** `url`: the API's address for tasks. */
export function factsOf(run: Omit<TaskRun, 'engine' | 'version'>, definition: TaskDefinition, url: string): TaskFacts {
  const { job, project } = definition;
  return {
    ...handOutOf(run, url),
    params: { ...definition.params, ...run.params },
    instant: run.instant,
    task: { id: run.task, name: definition.name },
    job,
    project,
    node: null,
  };
}

type NodePlace = Pick<NodeWork, 'execution' | 'id' | 'name' | 'project'>;

export function nodeFactsOf(run: HandOut, { execution, id, name, project }: NodePlace, url: string): NodeFacts {
  const node = { execution, id, name };
  return { ...handOutOf(run, url), instant: null, task: null, job: null, project, node };
}

type HandOut = Pick<ClaimedRun, 'tenant_name' | 'run' | 'lease' | 'attempt' | 'priority' | 'params' | 'credential'>;

function handOutOf(run: HandOut, url: string) {
  const { tenant_name: tenant, run: runId, lease, attempt, priority, params, credential } = run;
  const handOut = { tenant, run: runId, lease, credential, url: baseOf(url, tenant), idempotencyKey: runId };
  return { ...handOut, attempt, priority, params };
}

/** The beginning of a tenant's paths. */
function baseOf(url: string, tenant: string): string {
  return tenant === defaultTenant ? url : `${url}/t/${encodeURIComponent(tenant)}`;
}
