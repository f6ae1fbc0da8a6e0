import { describe, expect, it } from 'vitest';
import { FlowWorld } from '../../../../test/harness/flows/world.ts';
import { outlineOf } from '../../../flows/language/outline.ts';
import type { TreeStep } from '../shapes.ts';
import { drawIdle, drawTree } from './tree.ts';

function worldOf(steps: readonly unknown[], more: object = {}): FlowWorld {
  return new FlowWorld({ flow: 'drawn', steps, ...more });
}

function drawn(world: FlowWorld): TreeStep {
  const open = new Set(world.open.map(({ nid }) => nid));
  return drawTree(outlineOf(world.flow), world.state, (nid) => open.has(nid));
}

/** `path: state` of the steps that are not plain blocks, without those that are idle. */
function statesOf(tree: TreeStep): string[] {
  const inner = tree.children.flatMap(statesOf);
  const isShown = tree.state !== 'idle' && (tree.verb !== 'sequence' || tree.path === 'steps');
  return isShown ? [`${tree.path}: ${tree.state}`, ...inner] : inner;
}

describe('the outline of a flow', () => {
  it('has each step with its verb, its title and the branch that it is in', () => {
    const { flow } = worldOf([
      { if: 'f.big', then: [{ task: 'ask' }], else: [{ wait: { on: { signal: 'go' }, for: '1h' } }] },
      { switch: 'f.land', cases: { de: [{ set: { 'f.a': 1, 'v.b': 2 } }] }, else: [{ fail: { code: 'where' } }] },
      { loop: [{ task: 'poll' }, 'break'], until: 'f.done', every: '30s', tag: 'polling' },
      { each: 'f.items', do: [{ call: 'other' }], undo: [{ task: 'take-back' }] },
      { on: { every: '2d' }, do: [{ signal: 'tick' }] },
      { parallel: [{ cancel: 'polling' }], expect: 1 },
    ]);
    const lines = (step: ReturnType<typeof outlineOf>): string[] => [
      [step.branch, step.verb, step.title, step.tag].filter((part) => part !== null && part !== '').join(' '),
      ...step.children.flatMap(lines).map((line) => ` ${line}`),
    ];
    expect(lines(outlineOf(flow)).join('\n')).toBe(
      `
sequence
 if f.big
  then sequence
   task ask
  else sequence
   wait signal go or 1h
 switch f.land
  case de sequence
   set f.a, v.b
  else sequence
   fail where
 loop until f.done, every 30s polling
  do sequence
   task poll
   break
 each f.items
  do sequence
   call other
  undo sequence
   task take-back
 on every 2d
  do sequence
   signal tick
 parallel the first 1
  cancel polling`.trimStart(),
    );
    expect(drawIdle(outlineOf(flow)).children.map(({ path, at, state }) => [path, at, state])).toEqual(
      Array.from({ length: 6 }, (_, i) => [`steps[${i}]`, `0_${i}`, 'idle']),
    );
  });
});

describe('a drawn execution', () => {
  it('shows done steps, the live one and those to come', () => {
    const world = worldOf([{ set: { 'f.a': 1 } }, { task: 'now' }, { task: 'later' }]);
    world.send({ point: 'launch', input: {} });
    expect(statesOf(drawn(world))).toEqual(['steps: running', 'steps[0]: done', 'steps[1]: running']);
    const live = drawn(world).children[1]?.nodes;
    expect(live).toEqual(world.open.map(({ nid }) => nid));
  });

  it('shows steps that were skipped, have failed or were cancelled', () => {
    const world = worldOf([
      { task: 'never', when: 'false' },
      { sequence: [{ fail: { code: 'x' } }], on_error: [{ set: { 'f.handled': true } }] },
      { parallel: [{ wait: { on: { signal: 'go' } } }, { set: { 'f.b': 1 } }], expect: 1 },
      { wait: '1h' },
    ]);
    world.send({ point: 'launch', input: {} });
    expect(statesOf(drawn(world))).toEqual([
      'steps: waiting',
      'steps[0]: skipped',
      'steps[1].sequence[0]: failed',
      'steps[1].on_error[0]: done',
      'steps[2]: done',
      'steps[2].parallel[0]: cancelled',
      'steps[2].parallel[1]: done',
      'steps[3]: waiting',
    ]);
  });

  it('shows an incident in the step and in those around it', () => {
    const world = worldOf([{ parallel: [{ sequence: [{ task: 'bad' }] }, { task: 'good' }] }]);
    world.send({ point: 'launch', input: {} });
    const { nid, attempt } = world.open.find(({ name }) => name === 'bad') ?? { nid: '', attempt: 0 };
    const outcome = { kind: 'failed', code: 'boom', message: 'no', data: null } as const;
    world.send({ point: 'answer', nid, attempt, outcome });
    expect(statesOf(drawn(world))).toEqual([
      'steps: incident',
      'steps[0]: incident',
      'steps[0].parallel[0].sequence[0]: incident',
      'steps[0].parallel[1]: running',
    ]);
  });

  it('shows the present round of a loop, not what earlier rounds have done', () => {
    const world = worldOf([
      {
        loop: [
          { if: '!has(f.n)', then: [{ set: { 'f.n': 1 } }], else: [{ task: 'second' }] },
          { task: 'after', when: '!has(f.m)' },
        ],
        max: 2,
      },
    ]);
    world.send({ point: 'launch', input: {} });
    const { nid = '', attempt = 0 } = world.open[0] ?? {};
    world.send({ point: 'answer', nid, attempt, outcome: { kind: 'done', result: null } });
    expect(world.open.at(-1)?.name).toBe('second');
    expect(statesOf(drawn(world))).toEqual([
      'steps: running',
      'steps[0]: running',
      'steps[0].loop[0]: running',
      'steps[0].loop[0].else[0]: running',
    ]);
  });

  it('shows the whole way of an execution that has ended', () => {
    const world = worldOf([{ if: 'true', then: [{ set: { 'f.a': 1 } }], else: [{ task: 'x' }] }, 'break'].slice(0, 1));
    world.send({ point: 'launch', input: {} });
    expect(world.state.ending).toEqual({ kind: 'done' });
    expect(statesOf(drawn(world))).toEqual(['steps: done', 'steps[0]: done', 'steps[0].then[0]: done']);
  });
});
