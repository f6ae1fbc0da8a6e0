/** Live nodes of an execution as its view shows them. Pure: what is read from other tables is given. */
import type { FlowError, FlowNode, FlowState } from '../../../flows/interpreter/state.ts';
import { isObject, type Json, memberOf } from '../../../flows/json.ts';
import type { Flow, Step } from '../../../flows/language/step.ts';
import type { OutlineStep } from '../../../flows/language/outline.ts';
import type { CallAnswer } from '../../../http/client.ts';
import type { executionViewEndpoints } from './endpoints.ts';
import type { ValueBudget } from './value-budget.ts';
import type { WaitReader } from './waits.ts';

export type ExecutionDetail = CallAnswer<(typeof executionViewEndpoints)['GET /api/executions/{id}']>;
export type NodeView = ExecutionDetail['nodes'][number];

/** The ids of the work of nodes, by node and attempt. */
export interface WorkIds {
  readonly runs: ReadonlyMap<string, string>;
  readonly workitems: ReadonlyMap<string, string>;
}

export function workKey(nid: string, attempt: number): string {
  return `${nid}/${attempt}`;
}

/** Maximum nodes of one answer, each about 500 bytes. */
export const maxNodes = 2_000;

export interface Shown {
  readonly flow: Flow;
  readonly outline: OutlineStep;
  /** Masked. */
  readonly state: FlowState;
  readonly reader: WaitReader;
  readonly work: WorkIds;
  readonly values: ValueBudget;
}

/** In the order of the document, and of visits. */
export function viewNodes(shown: Shown): NodeView[] {
  const order = new Map(positionsIn(shown.outline).map((at, i) => [at, i]));
  const nodes = Object.entries(shown.state.nodes).toSorted(
    ([, a], [, b]) => (order.get(a.at) ?? 0) - (order.get(b.at) ?? 0),
  );
  return nodes.slice(0, maxNodes).map(([nid, node]) => viewNode(shown, nid, node));
}

function positionsIn({ at, children }: OutlineStep): string[] {
  return [at, ...children.flatMap(positionsIn)];
}

function viewNode({ flow, reader, work, values }: Shown, nid: string, node: FlowNode): NodeView {
  const step = flow.byPosition.get(node.at);
  const key = workKey(nid, node.attempt);
  const waits = reader.waitsOf(nid);
  const child = childOf(node);
  return {
    id: nid,
    at: node.at,
    path: step?.path ?? '',
    verb: step?.verb ?? '?',
    name: nameOf(step, waits?.names[0]),
    tag: step?.tag ?? null,
    phase: node.phase,
    role: node.role,
    attempt: node.attempt,
    parent: node.parent,
    since: isoOf(node.since),
    waits: waits && {
      kind: waits.kind,
      message: waits.message,
      names: waits.names,
      until: waits.untilMs === null ? null : isoOf(waits.untilMs),
      child,
    },
    error: node.error === undefined ? null : viewError(node.error),
    item: itemOf(node),
    vars: node.vars !== undefined && values.fits(node.vars) ? node.vars : {},
    input: inputOf(node, values),
    run: work.runs.get(key) ?? null,
    call: child,
    workitem: work.workitems.get(key) ?? null,
    timers: timersOf(node),
  };
}

function nameOf(step: Step | undefined, calledFlow: string | undefined): string | null {
  if (step?.verb === 'task') return step.name;
  return step?.verb === 'call' ? (calledFlow ?? step.title) : null;
}

/** Runs and work items have their input with them; that of a hosted function is nowhere else. */
function inputOf({ memory = {} }: FlowNode, values: ValueBudget): Json {
  const { input = null } = memory;
  return values.fits(input) ? input : null;
}

/** The execution that it has called. */
function childOf({ memory = {} }: FlowNode): string | null {
  const { call } = memory;
  return typeof call === 'string' ? call : null;
}

/** Of a step that is done for each item of a list: which item. */
function itemOf({ locals }: FlowNode): NodeView['item'] {
  if (locals === undefined) return null;
  const [index, key] = [memberOf(locals, 'index'), memberOf(locals, 'key')];
  if (typeof index !== 'number' || (typeof key !== 'string' && typeof key !== 'number')) return null;
  return { index, key };
}

function timersOf({ timers = {} }: FlowNode): NodeView['timers'] {
  return Object.entries(timers).map(([name, { dueMs, plannedMs }]) => ({
    name,
    due_at: isoOf(dueMs),
    planned_at: plannedMs === undefined ? null : isoOf(plannedMs),
  }));
}

export function viewError({ code, message, data, node }: FlowError): NonNullable<ExecutionDetail['error']> {
  return { code, message: message.slice(0, maxErrorChars), data: isLong(data) ? null : data, node };
}

const maxErrorChars = 4_000;

function isLong(data: FlowError['data']): boolean {
  if (typeof data !== 'string' && !isObject(data) && !Array.isArray(data)) return false;
  return JSON.stringify(data).length > 4 * maxErrorChars;
}

export function isoOf(ms: number): string {
  return new Date(Math.max(-maxMs, Math.min(maxMs, ms))).toISOString();
}

/** The times that a `Date` can have. */
const maxMs = 8_640_000_000_000_000;
