import { expect, it } from 'vitest';
import type { Execution, FlowRun } from '../../../contract/flows.ts';
import { foldDeltas } from '../../interpreter/delta.ts';
import { blankState } from '../../interpreter/state.ts';
import { parseFlow } from '../../language/parse-flow.ts';
import { type Memory, memoryOf, noTally, noTrackers } from '../memory.ts';
import { execute } from './execute.ts';
import { detailsOf } from './run-details.ts';

function blank(document: { readonly flow: string; readonly steps: readonly never[] | readonly object[] }): Execution {
  const parsed = parseFlow(document);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.faults));
  const flow = {
    flowId: 'f',
    version: 1,
    name: 'f',
    projectId: null,
    document: {},
    parsed,
    functions: [],
  };
  const sealed: Memory = {
    flow,
    key: null,
    parent: null,
    depth: 0,
    isStored: false,
    state: blankState,
    tally: noTally,
    trackers: noTrackers,
    deltaChars: 0,
    snapshotChars: 0,
  };
  return { id: 'e', rev: 0, owner: null, epoch: 0, over: false, bytes: 0, sealed };
}

function take(from: Execution, point: 'launch' | 'continue', body: object): FlowRun {
  const message = { id: 'm', execution: 'e', bornMs: 0, point, actor: null, body: { point, ...body } };
  const how = { nowMs: 0, seed: '', maxMessages: 10, hosted: new Set<string>(), isSpent: () => false, link: () => '' };
  return execute(from, message, how);
}

it('An execution that left-over work makes too large fails, and leaves nothing under way.', () => {
  const large = Array.from({ length: 20 }, (_, i) => ({ set: { [`f.large${i}`]: '$(input.text)' } }));
  const steps = [{ on: { every: '1h' }, do: [] }, { task: 'beside', background: true }, ...large, { task: 'wrong' }];
  const runs = [take(blank({ flow: 'f', steps }), 'launch', { flow: 'f', input: { text: 'x'.repeat(1_000_000) } })];
  for (let run = runs[0]; run?.more === true; run = runs.at(-1)) runs.push(take(run.to, 'continue', {}));
  const last = runs.at(-1);
  const { state } = memoryOf(last?.to ?? blank({ flow: 'f', steps: [] }));
  expect(runs.length).toBeGreaterThan(2);
  expect(state.ending).toMatchObject({ kind: 'failed', error: { code: 'too_large' } });
  expect([state.nodes, state.left]).toEqual([{}, []]);
  expect(last?.timers.cleared).toHaveLength(1);
  const deltas = runs.map((run) => JSON.parse(detailsOf(run).entry.delta) as never);
  expect(foldDeltas(deltas)).toEqual(state);
});
