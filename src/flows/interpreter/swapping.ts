/**
 * Replaces steps of a live execution. The document is replaced as a whole; positions outside of the replaced steps stay what they were.
 *
 * 1. A live node at a replaced position is removed with everything inside it, and its step begins again as a new node. Nothing is
 *    compensated: what was begun inside is stopped.
 * 2. The execution is left as it was if a task is under way inside (unless that is forced), if a completed step inside has left a
 *    compensation, or if a replaced step is being closed.
 */
import type { Flow } from '../language/step.ts';
import { parseFlow } from '../language/parse-flow.ts';
import type { JsonObject } from '../json.ts';
import { dropUndo } from './compensations.ts';
import type { Run } from './run.ts';
import type { FlowNode, Frame, Operation, Refusal } from './state.ts';

type Swap = Extract<Operation, { action: 'swap' }>;

export function swap(run: Run, { document, at, force, fields = {} }: Swap): Refusal | undefined {
  const parsed = parseFlow(document);
  if (!parsed.ok) {
    const [{ path, message } = { path: '', message: 'it is not valid' }] = parsed.faults;
    return { code: 'bad_document', detail: `${path} ${message}`.trim() };
  }
  const refusal = refusalOf(run, parsed.flow, at, force);
  if (refusal !== undefined) return refusal;
  run.swapTo(parsed.flow, document);
  run.draft.setFields(fields);
  restartAt(run, at);
  return undefined;
}

function refusalOf(run: Run, next: Flow, at: readonly string[], force: boolean): Refusal | undefined {
  const isSwapped = (position: string): boolean => at.some((outer) => isWithin(position, outer));
  for (const position of at)
    if (!run.flow.byPosition.has(position) || !next.byPosition.has(position))
      return { code: 'bad_document', detail: `there is no step at the position ${position}` };
  for (const [nid, node] of Object.entries(run.draft.nodes)) {
    const recorded = node.undo?.find((entry) => isSwapped(entry.at));
    if (recorded !== undefined)
      return { code: 'undo_recorded', detail: `a compensation of a replaced step is recorded at the node ${nid}` };
    const refusal = isSwapped(node.at)
      ? refusalOfSwapped(nid, node, { isTop: at.includes(node.at), force })
      : refusalOfKept(run, nid, node, next);
    if (refusal !== undefined) return refusal;
  }
  return undefined;
}

function refusalOfSwapped(
  nid: string,
  { phase, role, memory = {} }: FlowNode,
  { isTop, force }: { readonly isTop: boolean; readonly force: boolean },
): Refusal | undefined {
  if (isTop && (phase === 'close' || phase === 'undo' || role === 'undo'))
    return { code: 'too_late', detail: `the node ${nid} is being closed` };
  const isAtWork = memory['isSent'] === true || memory['isAwaited'] === true;
  if (isAtWork && !force)
    return { code: 'task_running', detail: `a task is under way at the node ${nid}; force cancels it` };
  return undefined;
}

/** Refuses a new document that gives the step of a kept node another verb: the node could not go on. */
function refusalOfKept({ flow }: Run, nid: string, { at }: FlowNode, next: Flow): Refusal | undefined {
  if (flow.byPosition.get(at)?.verb === next.byPosition.get(at)?.verb) return undefined;
  return { code: 'bad_document', detail: `the step of the node ${nid} has become another one` };
}

/** Whether a position is that of a step, or inside of it. */
function isWithin(position: string, outer: string): boolean {
  return position === outer || position.startsWith(`${outer}_`);
}

/** Lets the live nodes at these positions begin again. */
export function restartAt(run: Run, at: readonly string[]): void {
  for (const [nid, node] of Object.entries(run.draft.nodes)) {
    // it may have been inside of another one
    if (!at.includes(node.at) || run.draft.node(nid) === undefined) continue;
    removeWithChildren(run, nid);
    const { parent, role, locals } = node;
    detach(run, parent, nid);
    run.start(parent, node.at, { role, ...(locals !== undefined && { locals }), ...scopesOf(run, node) });
  }
}

/** What its parent gave it when it began. */
function scopesOf({ draft, flow }: Run, { parent, role }: FlowNode): { vars?: JsonObject; frame?: Frame } {
  const around = parent === null || role !== 'main' ? undefined : draft.node(parent);
  const verb = around === undefined ? undefined : flow.byPosition.get(around.at)?.verb;
  if (verb === 'parallel' || verb === 'each') return { vars: {}, frame: { f: {}, ret: null } };
  return verb === 'on' ? { vars: {} } : {};
}

function detach({ draft }: Run, parent: string | null, nid: string): void {
  if (parent === null) return;
  const children = draft.node(parent)?.children ?? [];
  draft.patch(parent, { children: children.filter((child) => child !== nid) });
}

function removeWithChildren(run: Run, nid: string): void {
  const node = run.draft.node(nid);
  if (node === undefined) return;
  for (const child of node.children) removeWithChildren(run, child);
  const { attempt, memory = {}, undo = [] } = node;
  if (memory['isSent'] === true || memory['isAwaited'] === true)
    run.effects.push({ kind: 'stop', nid, attempt, isKill: true });
  run.disarm(nid);
  run.draft.dropAll(`${nid}.`);
  dropUndo(run.draft, undo);
  run.draft.remove(nid);
}
