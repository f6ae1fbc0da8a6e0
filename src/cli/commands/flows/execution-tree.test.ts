import { describe, expect, it } from 'vitest';
import type { TreeStep } from '../../../api/executions/shapes.ts';
import type { Paint } from '../../print/paint.ts';
import { displayWidth } from '../../print/width.ts';
import { type DrawnNode, type DrawOptions, drawTree } from './execution-tree.ts';

const plain: Paint = (_, text) => text;
const marked: Paint = (style, text) => `<${style}>${text}</>`;
const nowMs = Date.parse('2026-01-03T00:00:00Z');
const usual: DrawOptions = { width: undefined, paint: plain, nowMs };

function step(verb: string, title = '', more: Partial<TreeStep> = {}): TreeStep {
  return { path: '', at: '0', verb, title, tag: null, branch: null, nodes: [], state: 'idle', children: [], ...more };
}

function block(branch: string, children: readonly TreeStep[], more: Partial<TreeStep> = {}): TreeStep {
  return step('sequence', '', { branch, children, ...more });
}

function root(...children: readonly TreeStep[]): TreeStep {
  return step('sequence', '', { children });
}

function node(id: string, more: Partial<DrawnNode> = {}): DrawnNode {
  return { id, phase: 'run', since: '2026-01-01T00:00:00Z', attempt: 1, waits: null, error: null, ...more };
}

const approval = root(
  step('sequence', '', {
    state: 'waiting',
    nodes: ['0_0-2'],
    children: [
      step('on', 'every 2d', {
        state: 'waiting',
        nodes: ['0_0_0-3'],
        children: [block('do', [step('task', 'remind')])],
      }),
      step('task', 'approve', { tag: 'decision', state: 'waiting', nodes: ['0_0_1-4'] }),
      block('on_timeout', [step('task', 'approve')]),
    ],
  }),
  step('if', 'f.decision.approved', {
    children: [block('then', [step('task', 'pay')]), block('else', [step('task', 'tell'), step('task', 'log')])],
  }),
);
const approvalNodes = [
  node('0_0-2', { waits: { kind: 'steps', message: 'steps inside it' } }),
  node('0_0_0-3', { waits: { kind: 'timer', message: 'its time, 2026-01-03T00:00:00Z' } }),
  node('0_0_1-4', { waits: { kind: 'human', message: 'an answer of meg' } }),
];

describe('the tree of an execution', () => {
  it('Each step has a line with its state, what it waits for, since when, and its node.', () => {
    expect(drawTree(approval, approvalNodes, usual)).toEqual([
      'STEP                              STATE    WAITS FOR                       FOR  NODE',
      '├─ ◦ sequence                     waiting                                   2d  0_0-2',
      '│  ├─ ◦ on every 2d               waiting  its time, 2026-01-03T00:00:00Z   2d  0_0_0-3',
      '│  │  └─ · do: task remind',
      '│  ├─ ◦ task approve #decision    waiting  an answer of meg                 2d  0_0_1-4',
      '│  └─ · on_timeout: task approve',
      '└─ · if f.decision.approved',
      '   ├─ · then: task pay',
      '   └─ · else:',
      '      ├─ · task tell',
      '      └─ · task log',
    ]);
  });

  it('Wide characters are aligned by their display width, and control characters are escaped.', () => {
    const tree = root(
      step('task', '日本語', { state: 'waiting', nodes: ['a'] }),
      step('task', 'ab\u001b[2J', { state: 'done' }),
    );
    const lines = drawTree(tree, [node('a')], usual);
    expect(lines[2]).toContain('ab\\u001b[2J');
    const columns = lines.slice(1).map((line) => displayWidth(line.slice(0, line.search(/waiting|done/))));
    expect(columns[0]).toBe(columns[1]);
  });

  it.each([120, 80, 79, 60, 59, 40])('On a terminal of %i columns no line is wider.', (width) => {
    const deep = Array.from({ length: 6 }).reduce<TreeStep>(
      (inner) => step('sequence', '', { state: 'waiting', nodes: ['0_0_1-4'], children: [inner] }),
      step('task', 'a-task-with-a-rather-long-name', { state: 'waiting', nodes: ['0_0_1-4'] }),
    );
    for (const tree of [approval, root(deep)])
      for (const line of drawTree(tree, approvalNodes, { ...usual, width }))
        expect(displayWidth(line)).toBeLessThanOrEqual(width);
  });

  it('A narrow terminal has shorter branches, and below 60 columns neither times nor nodes.', () => {
    const narrow = drawTree(approval, approvalNodes, { ...usual, width: 70 });
    expect(narrow[4]).toMatch(/^│ ├ ◦ task/);
    const tiny = drawTree(approval, approvalNodes, { ...usual, width: 50 });
    expect(tiny[0]).toMatch(/^STEP +STATE +WAITS FOR$/);
    expect(tiny.join('\n')).not.toContain('0_0_1-4');
  });

  it.each([
    ['done', '✓', '<green>done</>'],
    ['running', '●', '<cyan>running</>'],
    ['waiting', '◦', '<yellow>waiting</>'],
    ['incident', '!', '<red>incident</>'],
    ['failed', '✗', '<red>failed</>'],
    ['cancelled', '–', '<yellow>cancelled</>'],
    ['skipped', '»', '<dim>skipped</>'],
    ['idle', '·', '<dim>     </>'],
  ] as const)('A step that is %s has the mark %s.', (state, mark, cell) => {
    const [, line = ''] = drawTree(root(step('task', 'a', { state })), [], { ...usual, paint: marked });
    expect(line).toContain(`└─ ${mark} task a`);
    expect(line.replace(/ +<\/>/g, (padding) => (state === 'idle' ? padding : '</>'))).toContain(cell);
  });

  it('A step with several visits shows their number, and the incident among them.', () => {
    const error = { code: 'no_image', message: 'it is broken' };
    const nodes = [node('a'), node('b', { phase: 'incident', attempt: 3, error }), node('c')];
    const tree = root(step('task', 'thumbnail', { state: 'incident', nodes: ['a', 'b', 'c'] }));
    expect(drawTree(tree, nodes, usual)[1]).toBe(
      '└─ ! task thumbnail  incident ×3  no_image: it is broken, attempt 3   2d  b',
    );
  });

  it('With too few rows, parts in which nothing happens are folded, and the rest is counted.', () => {
    const folded = drawTree(approval, approvalNodes, { ...usual, maxRows: 8 });
    expect(folded).toHaveLength(7);
    expect(folded[6]).toContain('└─ · if f.decision.approved … 3 steps inside');
    const cut = drawTree(approval, approvalNodes, { ...usual, maxRows: 4 });
    expect([cut.length, cut.at(-1)]).toEqual([4, '… 4 more lines']);
    const long = root(...Array.from({ length: 50 }, (_, i) => step('task', `t${i}`)));
    expect(drawTree(long, [], { ...usual, maxRows: 10 })).toHaveLength(10);
    expect(drawTree(long, [], usual)).toHaveLength(51);
  });
});
