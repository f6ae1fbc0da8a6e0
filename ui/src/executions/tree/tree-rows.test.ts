import { describe, expect, it } from 'vitest';
import type { TreeNode, TreeStep } from './tree-model.ts';
import { layoutTree, type TreeRow } from './tree-rows.ts';

function step(at: string, verb: string, more: Partial<TreeStep> = {}): TreeStep {
  return { at, path: at, verb, title: at, tag: null, branch: null, state: 'idle', children: [], ...more };
}

function node(id: string, parent: string | null, more: Partial<TreeNode> = {}): TreeNode {
  return { id, at: id.split('-')[0] ?? '', parent, phase: 'run', attempt: 1, waits: null, ...more };
}

interface Given {
  readonly root: TreeStep;
  readonly nodes?: readonly TreeNode[];
  readonly opened?: Readonly<Record<string, boolean>>;
  readonly selected?: string;
}

const layout = ({ root, nodes = [], opened = {}, selected }: Given): TreeRow[] =>
  layoutTree({ root, nodes, opened: new Map(Object.entries(opened)), selected });

/** Each row as its depth in dots, its key and its state. */
const shown = (given: Given): string[] =>
  layout(given).map(({ depth, key, state }) => `${'.'.repeat(depth)}${key} ${state}`);

const each = (count: number): { readonly root: TreeStep; readonly nodes: readonly TreeNode[] } => {
  const bodies = Array.from({ length: count }, (_, i) => node(`0_0_0-${10 + i}`, '0_0-2'));
  const tasks = bodies.map(({ id }, i) => node(`0_0_0_0-${1_000 + i}`, id, { waits: { kind: 'run' } }));
  const task = step('0_0_0_0', 'task', { state: 'running' });
  const body = step('0_0_0', 'sequence', {
    branch: 'do',
    state: 'running',
    children: [task],
  });
  const items = step('0_0', 'each', { state: 'running', children: [body] });
  const root = step('0', 'sequence', { state: 'running', children: [items] });
  return { root, nodes: [node('0-1', null), node('0_0-2', '0-1'), ...bodies, ...tasks] };
};

describe('layout of the tree of an execution', () => {
  it('a step that a node visits shows the state of the node, and all others that of the step', () => {
    const root = step('0', 'sequence', {
      children: [
        step('0_0', 'task', { state: 'done' }),
        step('0_1', 'wait', { state: 'waiting' }),
        step('0_2', 'task'),
      ],
    });
    const nodes = [node('0-1', null), node('0_1-3', '0-1', { waits: { kind: 'signal' } })];
    expect(shown({ root, nodes })).toEqual(['0_0 done', '0_1-3 waiting', '0_2 idle']);
  });

  it('the body of a loop has no row, but both branches of an if have one', () => {
    const loop = step('0_0', 'loop', {
      children: [step('0_0_0', 'sequence', { branch: 'do', children: [step('0_0_0_0', 'task')] })],
    });
    const choice = step('0_1', 'if', {
      children: [
        step('0_1_0', 'sequence', { branch: 'then', children: [step('0_1_0_0', 'task')] }),
        step('0_1_1', 'sequence', { branch: 'else', state: 'skipped', children: [step('0_1_1_0', 'task')] }),
      ],
    });
    const rows = layout({ root: step('0', 'sequence', { children: [loop, choice] }) });
    expect(rows.map(({ key, kind, depth }) => `${depth} ${key} ${kind}`)).toEqual([
      '0 0_0 step',
      '1 0_0_0_0 step',
      '0 0_1 step',
      '1 0_1_0 branch',
      '2 0_1_0_0 step',
      '1 0_1_1 branch',
      '2 0_1_1_0 step',
    ]);
  });

  it('handlers are out of sight until they run or a user opens them', () => {
    const handler = step('0_0_e0', 'sequence', { branch: 'on_error', children: [step('0_0_e0_0', 'task')] });
    const root = step('0', 'sequence', { children: [step('0_0', 'task', { children: [handler] })] });
    expect(shown({ root })).toEqual(['0_0 idle']);
    expect(shown({ root, opened: { '0_0': true } })).toEqual(['0_0 idle', '.0_0_e0 idle']);
    const both = { '0_0': true, '0_0_e0': true };
    expect(shown({ root, opened: both })).toEqual(['0_0 idle', '.0_0_e0 idle', '..0_0_e0_0 idle']);
    const running = {
      ...root,
      children: [
        step('0_0', 'task', {
          children: [{ ...handler, state: 'running' as const }],
        }),
      ],
    };
    const nodes = [node('0-1', null), node('0_0-2', '0-1', { phase: 'handle' }), node('0_0_e0-3', '0_0-2')];
    expect(shown({ root: running, nodes })).toEqual(['0_0-2 handling', '.0_0_e0-3 running', '..0_0_e0_0 idle']);
  });

  it('a compensation is shown below the step that it undoes, though that has ended', () => {
    const undo = step('0_0_u', 'sequence', {
      branch: 'undo',
      state: 'running',
      children: [step('0_0_u_0', 'task', { state: 'incident' })],
    });
    const root = step('0', 'sequence', { children: [step('0_0', 'task', { children: [undo] })] });
    const nodes = [
      node('0-1', null, { phase: 'undo' }),
      node('0_0_u-5', '0-1'),
      node('0_0_u_0-6', '0_0_u-5', { phase: 'incident' }),
    ];
    expect(shown({ root, nodes })).toEqual(['0_0 idle', '.0_0_u-5 incident', '..0_0_u_0-6 incident']);
  });

  it('items of each are closed rows of which the first ten are shown, incidents before all others', () => {
    const { root, nodes } = each(1_000);
    const bad = nodes.map((each) => (each.id === '0_0_0_0-1900' ? { ...each, phase: 'incident' as const } : each));
    const rows = layout({ root, nodes: bad });
    expect(rows.map(({ key, state }) => `${key} ${state}`)).toEqual([
      '0_0-2 incident',
      '0_0_0-910 incident',
      '0_0_0_0-1900 incident',
      ...Array.from({ length: 9 }, (_, i) => `0_0_0-${10 + i} running`),
      '0_0-2 0_0_0 running',
    ]);
    expect(rows.at(-1)?.kind).toBe('more');
    expect([...(rows.at(-1)?.hidden ?? [])]).toEqual([['running', 990]]);
  });

  it('the rest of the items are shown when a user asks for them, and an item when it is opened', () => {
    const { root, nodes } = each(40);
    expect(layout({ root, nodes })).toHaveLength(12);
    expect(layout({ root, nodes, opened: { '0_0-2 0_0_0': true } })).toHaveLength(41);
    expect(layout({ root, nodes, opened: { '0_0_0-11': true } }).map(({ key }) => key)).toContain('0_0_0_0-1001');
  });

  it('a closed item tells what is at work inside it', () => {
    const { root, nodes } = each(2);
    const [, first] = layout({ root, nodes });
    expect(first?.isOpen).toBe(false);
    expect([...(first?.hidden ?? [])]).toEqual([['running', 1]]);
  });

  it('the selected row is shown wherever it is', () => {
    const { root, nodes } = each(1_000);
    const keys = layout({ root, nodes, selected: '0_0_0_0-1500' }).map(({ key }) => key);
    expect(keys).toContain('0_0_0-510');
    expect(keys).toContain('0_0_0_0-1500');
    const handler = step('0_0_e0', 'sequence', { branch: 'on_error', children: [step('0_0_e0_0', 'task')] });
    const small = step('0', 'sequence', { children: [step('0_0', 'task', { children: [handler] })] });
    expect(shown({ root: small, selected: '0_0_e0_0' }).at(-1)).toBe('..0_0_e0_0 idle');
  });

  it('blocks of a long document are closed unless something in them is at work', () => {
    const block = (at: string) =>
      step(at, 'sequence', { children: Array.from({ length: 100 }, (_, i) => step(`${at}_${i}`, 'task')) });
    const root = step('0', 'sequence', { children: [block('0_0'), block('0_1')] });
    expect(layout({ root, nodes: [node('0-1', null), node('0_1-2', '0-1')] })).toHaveLength(102);
  });

  it('lines lead from a row to the next one of the same depth', () => {
    const root = step('0', 'sequence', {
      children: [
        step('0_0', 'sequence', { children: [step('0_0_0', 'task'), step('0_0_1', 'task')] }),
        step('0_1', 'task'),
      ],
    });
    expect(layout({ root }).map(({ key, lines }) => [key, ...lines])).toEqual([
      ['0_0', true],
      ['0_0_0', true, true],
      ['0_0_1', true, false],
      ['0_1', false],
    ]);
  });
});
