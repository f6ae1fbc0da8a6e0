import * as fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { deedsArbitrary, flowArbitrary, inputArbitrary } from '../../../test/harness/flows/random-flows.ts';
import { FlowWorld } from '../../../test/harness/flows/world.ts';
import type { FlowNode } from './state.ts';

/** `FLOW_RUNS=10000 npx vitest run src/flows/interpreter` tries more of them, each time others. */
const more = Number(process.env['FLOW_RUNS'] ?? 0);
const runs = more > 0 ? { numRuns: more } : { numRuns: 150, seed: 19 };
if (more > 0) vi.setConfig({ testTimeout: 3_600_000 });

function play(world: FlowWorld, input: unknown, deeds: readonly Parameters<FlowWorld['do']>[0][]): void {
  world.send({ point: 'launch', input: input as never });
  for (const deed of deeds) if (!world.isOver) world.do(deed);
}

/** Everything that a state promises at any moment. */
function checkState({ state, flow }: FlowWorld): void {
  for (const [nid, node] of Object.entries(state.nodes)) {
    expect(flow.byPosition.has(node.at), nid).toBe(true);
    if (node.parent !== null) expect(state.nodes[node.parent]?.children, nid).toContain(nid);
    for (const child of node.children) expect(state.nodes[child]?.parent, child).toBe(nid);
    if (node.phase === 'incident') expect(node.error, nid).toBeDefined();
  }
  if (state.ending !== null) expect(state.nodes).toEqual({});
}

describe('any flow, whatever its tasks answer', () => {
  it('Deltas fold to the state, and nodes form one tree.', () => {
    fc.assert(
      fc.property(flowArbitrary, inputArbitrary, deedsArbitrary, (document, input, deeds) => {
        const world = new FlowWorld(document);
        play(world, input, deeds);
        checkState(world);
        expect(world.folded).toEqual(world.state);
        expect(JSON.parse(JSON.stringify(world.deltas))).toEqual(world.deltas);
      }),
      runs,
    );
  });

  it('A message that comes twice has one effect.', () => {
    fc.assert(
      fc.property(flowArbitrary, inputArbitrary, deedsArbitrary, (document, input, deeds) => {
        const once = new FlowWorld(document);
        const twice = new FlowWorld(document, { isDoubling: true });
        play(once, input, deeds);
        play(twice, input, deeds);
        expect(twice.state).toEqual(once.state);
        expect(twice.tasks).toEqual(once.tasks);
      }),
      runs,
    );
  });

  it('Runs that end after each inner message come to the same.', () => {
    fc.assert(
      fc.property(flowArbitrary, inputArbitrary, deedsArbitrary, (document, input, deeds) => {
        const whole = new FlowWorld(document);
        const pieces = new FlowWorld(document, { maxMessages: 1 });
        play(whole, input, deeds);
        play(pieces, input, deeds);
        expect(pieces.state).toEqual(whole.state);
        expect(pieces.tasks.map(({ nid, name }) => [nid, name])).toEqual(
          whole.tasks.map(({ nid, name }) => [nid, name]),
        );
      }),
      runs,
    );
  });

  it('An execution that is cancelled anywhere ends, leaves no node, and begins nothing but compensations and handlers.', () => {
    fc.assert(
      fc.property(flowArbitrary, inputArbitrary, deedsArbitrary, (document, input, deeds) => {
        const world = new FlowWorld(document);
        play(world, input, deeds);
        if (world.isOver) return;
        const before = world.tasks.length;
        const root = Object.values(world.state.nodes).find(({ parent }) => parent === null);
        world.send({ point: 'operate', operation: { action: 'cancel', nid: null } });
        skipIncidents(world);
        // an execution whose last step is done only ends its background steps, and stays done
        expect(world.state.ending).toEqual({ kind: root?.why?.kind === 'done' ? 'done' : 'cancelled' });
        expect(world.state.nodes).toEqual({});
        const begun = world.tasks.slice(before).map(({ name }) => name);
        expect(begun.filter((name) => !/^(undo\d+|cleanup)$/.test(name))).toEqual([]);
      }),
      runs,
    );
  });

  it('A cancelled execution compensates each completed step once, of each node the last one first.', () => {
    fc.assert(
      fc.property(flowArbitrary, inputArbitrary, deedsArbitrary, (document, input, deeds) => {
        const world = new FlowWorld(document);
        play(world, input, deeds);
        const nodes = Object.values(world.state.nodes);
        if (world.isOver || world.state.isPaused || nodes.some(isDoneRoot)) return;
        const before = world.tasks.length;
        world.operate({ action: 'cancel', nid: null });
        skipIncidents(world);
        const undone = world.tasks.slice(before).flatMap(({ nid }) => /^(.*_u)_0-/.exec(nid)?.[1] ?? []);
        const recorded = nodes.map(({ undo = [] }) => undo.map(({ at }) => at));
        const completing = nodes.flatMap((node) => undoOfCompleting(world, node));
        expect(undone.toSorted()).toEqual([...recorded.flat(), ...completing].toSorted());
        for (const ats of recorded)
          if (ats.every((at) => undone.filter((other) => other === at).length === 1))
            expect(undone.filter((at) => ats.includes(at))).toEqual(ats.toReversed());
      }),
      runs,
    );
  });

  it('An execution that is killed ends at once, and begins nothing.', () => {
    fc.assert(
      fc.property(flowArbitrary, inputArbitrary, deedsArbitrary, (document, input, deeds) => {
        const world = new FlowWorld(document);
        play(world, input, deeds);
        if (world.isOver) return;
        const before = world.tasks.length;
        world.send({ point: 'operate', operation: { action: 'kill', nid: null } });
        expect(world.state.ending).toEqual({ kind: 'cancelled' });
        expect(world.state.nodes).toEqual({});
        expect(world.tasks).toHaveLength(before);
      }),
      runs,
    );
  });

  it('Every execution comes to an end when its tasks are answered, its timers fire and its incidents are skipped.', () => {
    fc.assert(
      fc.property(flowArbitrary, inputArbitrary, deedsArbitrary, (document, input, deeds) => {
        const world = new FlowWorld(document);
        play(world, input, deeds);
        skipIncidents(world);
        expect(world.isOver).toBe(true);
        checkState(world);
        expect(world.state.store).toEqual({});
      }),
      runs,
    );
  });
});

function isDoneRoot({ parent, why }: FlowNode): boolean {
  return parent === null && why?.kind === 'done';
}

/** A step that is done, and only ends its background steps, will leave its own compensation. */
function undoOfCompleting({ flow }: FlowWorld, { at, phase, why }: FlowNode): string[] {
  const step = phase === 'close' && why?.kind === 'done' ? flow.byPosition.get(at) : undefined;
  return step?.undo ? [step.undo.block.at] : [];
}

/** Compensations that fail are incidents too: they are skipped until nothing is left. */
function skipIncidents(world: FlowWorld): void {
  for (let i = 0; i < 500 && !world.drain(); i++) {
    const incident = Object.entries(world.state.nodes).find(([, { phase }]) => phase === 'incident');
    if (incident === undefined) return;
    world.send({ point: 'operate', operation: { action: 'skip', nid: incident[0], result: null } });
  }
}
