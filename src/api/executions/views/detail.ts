/**
 * The view of one execution. Pure: what is read from other tables is given.
 *
 * Values that people have made may be long. The answer holds about two megabytes of them; what does not fit is named in `cut`.
 */
import { maskSealed } from '../../../flows/executions/masking.ts';
import type { StoredExecution } from '../../../flows/executions/stored.ts';
import { outlineOf } from '../../../flows/language/outline.ts';
import { viewHead } from './head.ts';
import { type ExecutionDetail, viewError, viewNodes, type WorkIds } from './nodes.ts';
import { drawTree } from './tree.ts';
import { ValueBudget } from './value-budget.ts';
import { makeWaitReader } from './waits.ts';

export interface Surroundings {
  readonly work: WorkIds;
  /** Ids of conductors that are alive; undefined: it is not known. */
  readonly living: ReadonlySet<string> | undefined;
  /** The revision that is shown. */
  readonly rev: number;
}

/** Maximum characters of values of people in an answer. */
const maxValueChars = 2 * 1024 * 1024;
/** Names of early signals in an answer. */
const maxEarlyNames = 100;

export function viewExecution(stored: StoredExecution, around: Surroundings): ExecutionDetail {
  const { head, flow } = stored;
  const state = maskSealed(flow, stored.state);
  const reader = makeWaitReader(flow, state, head);
  const values = new ValueBudget(maxValueChars);
  const outline = outlineOf(flow);
  const nodes = viewNodes({ flow, outline, state, reader, work: around.work, values });
  const { input, f, ret, ending, early } = state;
  return {
    ...viewHead(head),
    rev: around.rev,
    fields: values.takeAll('f.', f),
    input: values.take('input', input),
    result: values.take('result', ret),
    cut: values.cut,
    error: ending?.kind === 'failed' ? viewError(ending.error) : null,
    incidents: nodes.flatMap(({ id, path, error, since }) =>
      error === null ? [] : [{ node: id, path, code: error.code, message: error.message, since }],
    ),
    nodes,
    nodes_total: Object.keys(state.nodes).length,
    tree: drawTree(outline, state, (nid) => reader.isAtWork(nid)),
    own_document: stored.ownDocument,
    early: { total: early.length, names: early.slice(0, maxEarlyNames).map(({ name }) => name.slice(0, 200)) },
    is_busy: state.left.length > 0 || nodes.some(({ waits }) => waits?.kind === 'task'),
    owner: head.owner === null ? null : { id: head.owner, alive: around.living?.has(head.owner) ?? null },
  };
}
