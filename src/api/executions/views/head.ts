/** The head of an execution as lists and views show it. */
import type { Head } from '../../../flows/executions/heads.ts';
import type { CallAnswer } from '../../../http/client.ts';
import type { executionViewEndpoints } from './endpoints.ts';

type ListedExecution = CallAnswer<(typeof executionViewEndpoints)['GET /api/executions']>['items'][number];

export function viewHead(head: Head): ListedExecution {
  const { id, flow, version, status, key, labels, rev, parent, createdAt, updatedAt, endedAt } = head;
  return {
    id,
    flow,
    version,
    status,
    key,
    labels: { ...labels },
    rev,
    created_at: createdAt.toISOString(),
    updated_at: updatedAt.toISOString(),
    ended_at: endedAt?.toISOString() ?? null,
    parent: parent === null ? null : { execution: parent.execution, node: parent.nid },
  };
}
