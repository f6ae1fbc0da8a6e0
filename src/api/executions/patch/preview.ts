/**
 * Shows what a change of an execution comes to: the interpreter takes it on a copy of the state, so that a preview cannot differ from
 * the change itself. Nothing is written, and nothing leaves.
 */
import { compareDocuments } from '../../../flows/definitions/compare-documents.ts';
import type { StoredExecution } from '../../../flows/executions/stored.ts';
import { interpret } from '../../../flows/interpreter/interpret.ts';
import type { FlowState, Operation } from '../../../flows/interpreter/state.ts';
import type { CallAnswer } from '../../../http/client.ts';
import { newId } from '../../../kernel/id.ts';
import { refusalOf } from '../deliver.ts';
import type { patchEndpoints } from './endpoints.ts';

type Diff = CallAnswer<(typeof patchEndpoints)['PATCH /api/executions/{id}']>['diff'];

/** Nodes and timers that an answer names. */
const maxNamed = 1_000;

/** Throws the error with which the change would be refused. */
export function previewChange(stored: StoredExecution, operation: Operation, nowMs: number): Diff {
  const { flow, document, state, head } = stored;
  const result = interpret(
    flow,
    // what waits to be interpreted comes first, and is no part of the preview
    { ...state, left: [] },
    { id: newId(), body: { point: 'operate', operation } },
    {
      nowMs,
      seed: 'preview',
      execution: { id: head.id, key: head.key },
      depth: 0,
      // what the new steps do is no part of it either
      maxMessages: 0,
      isSpent: () => true,
      link: () => '',
      newId: () => newId(nowMs),
    },
  );
  if (result.refused !== null) throw refusalOf(result.refused);
  const { swapped } = result;
  const after = swapped === null ? { flow, document } : swapped;
  return {
    tree: compareDocuments({ flow, document }, after),
    cancelled: Object.keys(state.nodes)
      .filter((nid) => !Object.hasOwn(result.state.nodes, nid))
      .slice(0, maxNamed),
    timers_removed: goneTimers(state, result.state).slice(0, maxNamed),
  };
}

function goneTimers(before: FlowState, after: FlowState): string[] {
  const left = new Set(timersOf(after));
  return timersOf(before).filter((name) => !left.has(name));
}

function timersOf({ nodes }: FlowState): string[] {
  return Object.entries(nodes).flatMap(([nid, { timers = {} }]) =>
    Object.keys(timers).map((timer) => `${nid}/${timer}`),
  );
}
