import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FlowWorld } from '../../../test/harness/flows/world.ts';

type Shape = { readonly kind: 'task' | 'sequence' | 'parallel' | 'each'; readonly inside: readonly Shape[] };

const shape: fc.Arbitrary<Shape> = fc.letrec<{ shape: Shape }>((tie) => ({
  shape: fc.oneof(
    { maxDepth: 4, depthIdentifier: 'shape' },
    fc.constant({ kind: 'task', inside: [] } as const),
    fc.record({
      kind: fc.constantFrom('sequence', 'parallel', 'each'),
      inside: fc.array(tie('shape'), { minLength: 1, maxLength: 3 }),
    }),
  ),
})).shape;

/** Each task has a number of its own; its compensation has the same. */
function documentOf(shapes: readonly Shape[]): { steps: unknown[]; count: number } {
  let count = 0;
  const build = ({ kind, inside }: Shape): unknown => {
    if (kind !== 'task') {
      const steps = inside.map(build);
      return kind === 'each' ? { each: [1], do: steps } : { [kind]: steps };
    }
    const id = count++;
    return { task: `t${id}`, undo: [{ task: `u${id}`, with: { at: `$(f.at${id})` } }], result: `f.at${id}` };
  };
  return { steps: shapes.map(build), count };
}

/** Answers open tasks by these numbers until the execution ends. Returns the names of completed tasks and of compensations. */
function run(world: FlowWorld, picks: readonly number[], failing: string): { done: string[]; undone: string[] } {
  const done: string[] = [];
  const undone: string[] = [];
  world.send({ point: 'launch', input: {} });
  for (let i = 0; world.open.length > 0; i++) {
    const index = (picks[i % picks.length] ?? 0) % world.open.length;
    const { name, nid } = world.open[index] ?? { name: '', nid: '' };
    // a task that is being stopped has nothing to compensate, whatever it answers
    const isRunning = world.state.nodes[nid]?.phase === 'run';
    if (name.startsWith('u')) undone.push(name.slice(1));
    else if (name !== failing && isRunning) done.push(name.slice(1));
    world.answer(index, name === failing);
  }
  return { done, undone };
}

const picksArbitrary = fc.array(fc.nat({ max: 20 }), { minLength: 1, maxLength: 20 });

describe('undo', () => {
  it('Each completed step is compensated exactly once if a later one fails.', () => {
    fc.assert(
      fc.property(fc.array(shape, { minLength: 1, maxLength: 4 }), picksArbitrary, fc.nat(), (shapes, picks, at) => {
        const { steps, count } = documentOf(shapes);
        if (count === 0) return;
        const world = new FlowWorld({ flow: 'saga', steps, on_error: [{ fail: '$(err)' }] });
        const failing = `t${at % count}`;
        const { done, undone } = run(world, picks, failing);
        expect(world.state.ending?.kind).toBe('failed');
        expect(undone.toSorted()).toEqual(done.toSorted());
      }),
    );
  });

  it('Steps one after the other are compensated in the reverse order, with the fields of their moment.', () => {
    const sequential = fc.letrec<{ shape: Shape }>((tie) => ({
      shape: fc.oneof(
        { maxDepth: 4, depthIdentifier: 'sequential' },
        fc.constant({ kind: 'task', inside: [] } as const),
        fc.record({
          kind: fc.constant('sequence' as const),
          inside: fc.array(tie('shape'), { minLength: 1, maxLength: 3 }),
        }),
      ),
    })).shape;
    fc.assert(
      fc.property(fc.array(sequential, { minLength: 1, maxLength: 4 }), fc.nat(), (shapes, at) => {
        const { steps, count } = documentOf(shapes);
        const failing = at % count;
        const world = new FlowWorld({ flow: 'saga', steps, on_error: [{ fail: '$(err)' }] });
        const { undone } = run(world, [0], `t${failing}`);
        expect(undone).toEqual(Array.from({ length: failing }, (_, i) => String(failing - 1 - i)));
        for (const { name, input } of world.tasks)
          if (name.startsWith('u')) expect(input).toEqual({ at: { task: `t${name.slice(1)}` } });
      }),
    );
  });

  it('A cancelled execution is compensated, a killed one is not, and a finished one has nothing to compensate.', () => {
    const saga = { flow: 'saga', steps: [{ task: 't0', undo: [{ task: 'u0' }] }, { task: 't1' }] };
    const after = (action: 'cancel' | 'kill'): string[] => {
      const world = new FlowWorld(saga);
      world.send({ point: 'launch', input: {} });
      world.answer(0);
      world.send({ point: 'operate', operation: { action, nid: null } });
      world.drain();
      return world.tasks.map(({ name }) => name);
    };
    expect(after('cancel')).toEqual(['t0', 't1', 'u0']);
    expect(after('kill')).toEqual(['t0', 't1']);
    const world = new FlowWorld(saga);
    expect(run(world, [0], '')).toEqual({ done: ['0', '1'], undone: [] });
  });

  it('A compensation that fails is an incident, and the others follow when it is skipped.', () => {
    const steps = [0, 1].map((id) => ({ task: `t${id}`, undo: [{ task: `u${id}` }] }));
    const world = new FlowWorld({ flow: 'saga', steps: [...steps, { fail: 'no' }], on_error: [{ task: 'tell' }] });
    run(world, [0], 'u1');
    const [nid, node] = Object.entries(world.state.nodes).find(([, { phase }]) => phase === 'incident') ?? [];
    expect(node?.error).toMatchObject({ message: 'no' });
    world.send({ point: 'operate', operation: { action: 'skip', nid: nid ?? '', result: null } });
    world.drain();
    expect(world.tasks.map(({ name }) => name)).toEqual(['t0', 't1', 'u1', 'u0', 'tell']);
    expect(world.state.ending).toEqual({ kind: 'done' });
  });

  it('A failed attempt is compensated before the next one.', () => {
    const inside = [{ task: 't0', undo: [{ task: 'u0' }] }, { task: 't1' }];
    const world = new FlowWorld({
      flow: 'saga',
      steps: [{ sequence: inside, retry: { max_attempts: 2, delay: '1s' } }],
    });
    world.send({ point: 'launch', input: {} });
    world.answer(0);
    world.answer(0, true);
    world.answer(0);
    world.fireNext();
    world.drain();
    expect(world.tasks.map(({ name }) => name)).toEqual(['t0', 't1', 'u0', 't0', 't1']);
    expect(world.state.ending).toEqual({ kind: 'done' });
  });
});
