/** Random flows, and random answers of their tasks, for property tests. */
import * as fc from 'fast-check';
import type { Json } from '../../../src/flows/json.ts';

type Document = Record<string, unknown>;

const tasks = fc.oneof(
  { weight: 6, arbitrary: fc.nat({ max: 5 }).map((n): Document => ({ task: `t${n}` })) },
  {
    weight: 1,
    arbitrary: fc.constantFrom<Document>(
      { task: 'run', process: { command: ['true'] } },
      { task: 'asked', http: { url: 'https://example.com', callback: '2h' } },
      { task: 'person', human: { team: 'a', title: 'b' } },
      { call: 'child', with: { n: '$(f.?n.orValue(0))' } },
      { call: 'child', mode: 'detached' },
    ),
  },
);

const waits = fc.constantFrom<Document>(
  { wait: '5m' },
  { wait: { on: { signal: 'go' }, for: '1h' } },
  { wait: { on: [{ signal: 'go', match: 'event.payload > 500' }, { every: '20m' }] } },
  { wait: { until: '2026-01-01T02:00:00Z', on: { entered: 'x' } } },
);

/** Their bodies have no tags and send nothing: a listener that hears itself would go on for ever. */
const listeners = fc.record({
  on: fc.constantFrom<Document>(
    { signal: 'go' },
    { every: '7m' },
    { cron: '*/30 * * * *', missed: 'all' },
    { entered: 'x' },
    { left: 'y' },
  ),
  do: fc.constantFrom<readonly Document[]>([{ task: 'heard' }], [{ set: { 'f.heard': '$(event.name)' } }]),
  mode: fc.constantFrom('queue', 'parallel'),
});

const others = fc.constantFrom<Document>(
  { set: { 'f.n': 1 } },
  { set: { 'v.k': 1, ret: 2 } },
  { set: { 'f.bad': '$(f.missing.x)' } },
  { signal: 'go' },
  { signal: 'go', to: '00000000-0000-7000-8000-000000000001' },
  { cancel: 'x' },
  { cancel: 'y', kill: true },
  { fail: { code: 'boom' } },
);

/** `depth`: how deep steps may nest. `loops`: whether a loop is around them, which `break` and `continue` need. */
function stepArbitrary(depth: number, loops: boolean): fc.Arbitrary<Document> {
  const leaf = fc.oneof(
    { weight: 6, arbitrary: tasks },
    { weight: 2, arbitrary: waits },
    { weight: 2, arbitrary: others },
    { weight: 1, arbitrary: listeners },
    ...(loops ? [{ weight: 2, arbitrary: fc.constantFrom<Document>({ break: true }, { continue: true }) }] : []),
  );
  if (depth === 0) return leaf;
  const inside = (isLoop: boolean) => fc.array(attributed(depth - 1, isLoop), { minLength: 1, maxLength: 3 });
  const steps = inside(loops);
  return fc.oneof(
    { weight: 3, arbitrary: leaf },
    { weight: 2, arbitrary: steps.map((sequence) => ({ sequence })) },
    { weight: 2, arbitrary: parallelArbitrary(inside(false)) },
    { weight: 1, arbitrary: fc.tuple(steps, steps).map(([yes, no]) => ({ if: 'f.yes', then: yes, else: no })) },
    {
      weight: 1,
      arbitrary: fc.tuple(steps, steps).map(([a, no]) => ({ switch: 'f.yes', cases: { true: a }, else: no })),
    },
    { weight: 2, arbitrary: loopArbitrary(inside(true)) },
    {
      weight: 2,
      arbitrary: fc.record({
        each: fc.constantFrom<unknown>([1, 2, 3], 'input', []),
        do: inside(true),
        concurrent: fc.constantFrom(1, 2),
        merge: fc.constantFrom('first', 'last', 'ignore'),
      }),
    },
  );
}

function parallelArbitrary(steps: fc.Arbitrary<Document[]>): fc.Arbitrary<Document> {
  const more = fc.record({
    rest: fc.constantFrom('cancel', 'wait'),
    merge: fc.constantFrom('first', 'last', 'ignore'),
    concurrent: fc.constantFrom(1, 2, 9),
  });
  return fc.tuple(steps, more, fc.option(fc.constant(1), { nil: undefined })).map(([parallel, rest, expect]) => {
    const isAny = parallel.some((step) => step['background'] !== true && !('on' in step));
    return { parallel, ...rest, ...(expect !== undefined && isAny && { expect }) };
  });
}

function loopArbitrary(steps: fc.Arbitrary<Document[]>): fc.Arbitrary<Document> {
  const test = fc.constantFrom<Document>({ while: '!has(f.n)' }, { until: 'has(f.n)' }, { every: '2m' }, {});
  return fc.tuple(steps, test).map(([loop, more]) => ({ loop, max: 3, ...more }));
}

function attributed(depth: number, loops: boolean): fc.Arbitrary<Document> {
  const handler = fc.constantFrom<readonly Document[]>(
    [{ task: 'cleanup' }],
    [{ set: { 'f.handled': true } }],
    [{ task: 'cleanup' }, { fail: 'again' }],
  );
  const onError = fc.oneof(
    handler,
    handler.map((steps) => [{ match: 'boom', do: steps }]),
  );
  const attributes = fc.record(
    {
      tag: fc.constantFrom('x', 'y'),
      timeout: fc.constantFrom('3m', '30m'),
      retry: fc.constantFrom({ max_attempts: 2, delay: '1m' }, { max_attempts: 3, on: ['error'] }),
      on_error: onError,
      on_cancel: handler,
      on_timeout: handler,
      when: fc.constantFrom('f.yes', '!f.yes'),
      vars: fc.constant({ a: 1 }),
      result: fc.constantFrom('f.r', 'v.r'),
      background: fc.constantFrom(true, false, false),
    },
    { requiredKeys: [] },
  );
  const undo = fc.option(fc.nat({ max: 99 }), { nil: undefined, freq: 3 });
  return fc.tuple(stepArbitrary(depth, loops), attributes, undo).map(([step, more, id]) => {
    const isOn = 'on' in step;
    // attributes of a listener would only repeat those of its body
    const own = isOn ? {} : more;
    return { ...step, ...own, ...(id !== undefined && !isOn && { undo: [{ task: `undo${id}` }] }) };
  });
}

export const flowArbitrary: fc.Arbitrary<Document> = fc
  .tuple(
    fc.array(attributed(3, false), { minLength: 1, maxLength: 4 }),
    fc.option(fc.constantFrom([{ task: 'tell' }], [{ do: [{ task: 'tell' }] }]), { nil: undefined }),
  )
  .map(([steps, handlers]) => ({ flow: 'random', steps, ...(handlers !== undefined && { on_error: handlers }) }));

/** What happens next to an execution: chosen by a number, so that a failing run shrinks. */
export interface Deed {
  readonly kind: 'answer' | 'fail' | 'time' | 'signal' | 'pause' | 'retry' | 'skip' | 'cancel' | 'kill';
  readonly pick: number;
}

export const deedsArbitrary: fc.Arbitrary<readonly Deed[]> = fc.array(
  fc.record({
    kind: fc.oneof(
      { weight: 8, arbitrary: fc.constantFrom('answer', 'answer', 'answer', 'fail', 'time', 'signal') },
      { weight: 1, arbitrary: fc.constantFrom('pause', 'retry', 'skip', 'cancel', 'kill') },
    ),
    pick: fc.nat({ max: 1_000 }),
  }),
  { maxLength: 40 },
);

export const inputArbitrary: fc.Arbitrary<Json> = fc.record({ yes: fc.boolean() });
