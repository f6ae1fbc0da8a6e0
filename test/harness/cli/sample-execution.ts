/** For the tests of this folder only: an execution of the approval flow, as the API answers it. */
import type { TreeStep } from '../../../src/api/executions/shapes.ts';
import type { Execution } from '../../../src/cli/commands/flows/execution.ts';

type Node = Execution['nodes'][number];

export const executionId = '019b0000-0000-7000-8000-000000000001';

function step(verb: string, title: string, more: Partial<TreeStep> = {}): TreeStep {
  return { path: '', at: '0', verb, title, tag: null, branch: null, nodes: [], state: 'idle', children: [], ...more };
}

export function sampleNode(id: string, name: string, more: Partial<Node> = {}): Node {
  return {
    id,
    at: '0_0',
    path: 'steps[0]',
    verb: 'task',
    name,
    tag: null,
    phase: 'run',
    role: 'main',
    attempt: 1,
    parent: '0-1',
    since: '2026-01-01T00:00:00Z',
    waits: { kind: 'human', message: 'an answer of meg', names: [name], until: null, child: null },
    error: null,
    item: null,
    vars: {},
    run: null,
    call: null,
    input: null,
    workitem: null,
    timers: [],
    ...more,
  };
}

export function sampleExecution(more: Partial<Execution> = {}): Execution {
  const [node] = [sampleNode('0_0-2', 'approve')];
  return {
    id: executionId,
    flow: 'expense',
    version: 1,
    status: 'waiting',
    key: null,
    labels: { customer: 'ann' },
    rev: 2,
    created_at: '2026-01-01T00:00:00Z',
    updated_at: '2026-01-01T00:00:00Z',
    ended_at: null,
    parent: null,
    input: { amount: 12 },
    fields: { amount: 12 },
    cut: [],
    result: null,
    error: null,
    incidents: [],
    nodes: [node],
    nodes_total: 1,
    tree: step('sequence', '', {
      children: [step('task', 'approve', { state: 'waiting', nodes: ['0_0-2'] }), step('task', 'pay')],
    }),
    own_document: false,
    early: { total: 0, names: [] },
    is_busy: false,
    owner: null,
    ...more,
  };
}

/** A step that failed, and that only a person can bring on. */
export function withIncidents(...names: readonly string[]): Execution {
  const error = { code: 'declined', message: 'the card was declined', data: null, node: '' };
  const nodes = names.map((name, i) => {
    const waits: Node['waits'] = { kind: 'incident', message: 'a person', names: [], until: null, child: null };
    return sampleNode(`0_${i}-9`, name, { phase: 'incident', error, waits, path: `steps[${i}]` });
  });
  const incidents = nodes.map(({ id, path, since }) => ({
    node: id,
    path,
    code: error.code,
    message: error.message,
    since,
  }));
  const children = nodes.map(({ id, name }) => step('task', name ?? '', { state: 'incident', nodes: [id] }));
  return sampleExecution({ status: 'incident', nodes, incidents, tree: step('sequence', '', { children }) });
}

export function ended(status: 'done' | 'failed' | 'cancelled', more: Partial<Execution> = {}): Execution {
  const error = status === 'failed' ? { code: 'declined', message: 'no', data: null, node: '0_1-3' } : null;
  const over = { status, rev: 5, nodes: [], error, ended_at: '2026-01-02T00:00:00Z' };
  return sampleExecution({
    ...over,
    tree: step('sequence', '', { children: [step('task', 'approve', { state: 'done' })] }),
    ...more,
  });
}
