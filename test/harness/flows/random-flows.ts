/** Random flows, and random answers of their tasks, for property tests. */
import * as fc from 'fast-check';
import type { Json } from '../../../src/flows/json.ts';

type Document = Record<string, unknown>;

/** `depth`: how deep steps may nest. */
function stepArbitrary(depth: number): fc.Arbitrary<Document> {
  const leaf = fc.oneof(
    { weight: 6, arbitrary: fc.nat({ max: 5 }).map((n) => ({ task: `t${n}` })) },
    { weight: 2, arbitrary: fc.constantFrom<Document>({ wait: '5m' }, { wait: { on: { signal: 'go' }, for: '1h' } }) },
    { weight: 1, arbitrary: fc.constantFrom<Document>({ set: { 'f.n': 1 } }, { signal: 'go' }, { cancel: 'x' }) },
    {
      weight: 1,
      arbitrary: fc.constantFrom<Document>({ fail: { code: 'boom' } }, { set: { 'f.bad': '$(f.missing.x)' } }),
    },
    { weight: 1, arbitrary: fc.constant<Document>({ on: { signal: 'go' }, do: [{ task: 'heard' }] }) },
  );
  if (depth === 0) return leaf;
  const steps = fc.array(attributed(depth - 1), { minLength: 1, maxLength: 3 });
  return fc.oneof(
    { weight: 3, arbitrary: leaf },
    { weight: 2, arbitrary: steps.map((sequence) => ({ sequence })) },
    { weight: 2, arbitrary: fc.record({ parallel: steps, rest: fc.constantFrom('cancel', 'wait') }) },
    { weight: 1, arbitrary: fc.tuple(steps, steps).map(([yes, no]) => ({ if: 'f.yes', then: yes, else: no })) },
    { weight: 1, arbitrary: steps.map((loop) => ({ loop, max: 3, while: '!has(f.n)' })) },
    {
      weight: 1,
      arbitrary: fc
        .tuple(steps, fc.constantFrom(1, 2))
        .map(([body, concurrent]) => ({ each: [1, 2, 3], do: body, concurrent })),
    },
    { weight: 1, arbitrary: steps.map((loop) => ({ loop: [...loop, 'break'], max: 3 })) },
  );
}

function attributed(depth: number): fc.Arbitrary<Document> {
  const handler = fc.constantFrom([{ task: 'cleanup' }], [{ set: { 'f.handled': true } }]);
  const attributes = fc.record(
    {
      tag: fc.constantFrom('x', 'y'),
      timeout: fc.constantFrom('3m', '30m'),
      retry: fc.constant({ max_attempts: 2, delay: '1m' }),
      on_error: handler,
      on_cancel: handler,
      on_timeout: handler,
      when: fc.constantFrom('f.yes', '!f.yes'),
      vars: fc.constant({ a: 1 }),
      result: fc.constantFrom('f.r', 'v.r'),
    },
    { requiredKeys: [] },
  );
  const undo = fc.option(fc.nat({ max: 99 }), { nil: undefined, freq: 3 });
  return fc.tuple(stepArbitrary(depth), attributes, undo).map(([step, more, id]) => {
    const isOn = 'on' in step;
    // attributes of a listener would only repeat those of its body
    const own = isOn ? {} : more;
    return { ...step, ...own, ...(id !== undefined && !isOn && { undo: [{ task: `undo${id}` }] }) };
  });
}

export const flowArbitrary: fc.Arbitrary<Document> = fc
  .tuple(
    fc.array(attributed(3), { minLength: 1, maxLength: 4 }),
    fc.option(fc.constantFrom([{ task: 'tell' }], [{ do: [{ task: 'tell' }] }]), { nil: undefined }),
  )
  .map(([steps, handlers]) => ({ flow: 'random', steps, ...(handlers !== undefined && { on_error: handlers }) }));

/** What happens next to an execution: chosen by a number, so that a failing run shrinks. */
export interface Deed {
  readonly kind: 'answer' | 'fail' | 'time' | 'signal';
  readonly pick: number;
}

export const deedsArbitrary: fc.Arbitrary<readonly Deed[]> = fc.array(
  fc.record({
    kind: fc.constantFrom('answer', 'answer', 'answer', 'fail', 'time', 'signal'),
    pick: fc.nat({ max: 1_000 }),
  }),
  { maxLength: 40 },
);

export const inputArbitrary: fc.Arbitrary<Json> = fc.record({ yes: fc.boolean() });
