/**
 * The steps of a flow with their states in one execution, for drawing.
 *
 * 1. A step with live nodes shows what they do: an incident, work under way, or waiting. The steps around it show the same.
 * 2. A step without live nodes shows how its last visit ended. The state of an execution keeps that, one word for each step.
 * 3. In a live sequence, the steps after the live one are idle: in a loop, their last visit belongs to an earlier round. The same
 *    holds for the other branches of a live `if` or `switch`.
 *
 * The cost is linear in the steps of the document and the live nodes.
 */
import type { EndedAs, FlowNode, FlowState } from '../../../flows/interpreter/state.ts';
import type { OutlineStep } from '../../../flows/language/outline.ts';
import type { StepState, TreeStep } from '../shapes.ts';

/** Maximum live nodes that one step lists. */
const maxNodes = 100;

export function drawIdle(outline: OutlineStep): TreeStep {
  return { ...outline, nodes: [], state: 'idle', children: outline.children.map(drawIdle) };
}

/** `isAtWork` says whether a node has work under way elsewhere. */
export function drawTree(
  outline: OutlineStep,
  state: Pick<FlowState, 'nodes' | 'ended'>,
  isAtWork: (nid: string) => boolean,
): TreeStep {
  const live = new Map<string, string[]>();
  for (const [nid, { at }] of Object.entries(state.nodes)) live.set(at, [...(live.get(at) ?? []), nid]);
  return draw(outline, { live, state, isAtWork });
}

interface Drawing {
  readonly live: ReadonlyMap<string, readonly string[]>;
  readonly state: Pick<FlowState, 'nodes' | 'ended'>;
  readonly isAtWork: (nid: string) => boolean;
}

function draw(step: OutlineStep, drawing: Drawing): TreeStep {
  const nodes = drawing.live.get(step.at) ?? [];
  const children = drawChildren(step, nodes.length > 0, drawing);
  const state =
    nodes.length === 0 ? endedState(drawing.state.ended[step.at]) : strongest(liveStates(nodes, drawing), children);
  return { ...step, nodes: nodes.slice(0, maxNodes), state, children };
}

function drawChildren(step: OutlineStep, isLive: boolean, drawing: Drawing): TreeStep[] {
  const isPassed = isLive ? passedSteps(step, drawing.live) : () => true;
  return step.children.map((child, i) => (isPassed(i) ? draw(child, drawing) : drawIdle(child)));
}

/** Which children of a live step belong to its present visit. */
function passedSteps({ verb, children }: OutlineStep, live: Drawing['live']): (index: number) => boolean {
  const isLiveChild = ({ at }: OutlineStep): boolean => live.has(at);
  if (verb === 'sequence') {
    const last = children.findLastIndex((child) => child.branch === null && isLiveChild(child));
    return (i) => last < 0 || i <= last || children[i]?.branch !== null;
  }
  if (verb === 'if' || verb === 'switch') {
    const hasLive = children.some(isLiveChild);
    return (i) => !hasLive || live.has(children[i]?.at ?? '');
  }
  return () => true;
}

const endedStates: Readonly<Record<EndedAs, StepState>> = {
  done: 'done',
  skipped: 'skipped',
  failed: 'failed',
  cancelled: 'cancelled',
  // a `break` or `continue` has led out of it
  left: 'done',
};

function endedState(end: EndedAs | undefined): StepState {
  return end === undefined ? 'idle' : endedStates[end];
}

function liveStates(nodes: readonly string[], { state, isAtWork }: Drawing): StepState[] {
  return nodes.map((nid) => stateOf(state.nodes[nid], isAtWork(nid)));
}

function stateOf(node: FlowNode | undefined, isAtWork: boolean): StepState {
  if (node?.phase === 'incident') return 'incident';
  return isAtWork || node?.phase === 'close' ? 'running' : 'waiting';
}

/** A step shows what is most important in it. */
const strength: readonly StepState[] = ['incident', 'running', 'waiting'];

function strongest(own: readonly StepState[], children: readonly TreeStep[]): StepState {
  const states = new Set([...own, ...children.filter(({ nodes }) => nodes.length > 0).map(({ state }) => state)]);
  return strength.find((state) => states.has(state)) ?? 'waiting';
}
