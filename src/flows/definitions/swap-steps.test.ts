import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../json.ts';
import { parseFlow } from '../language/parse-flow.ts';
import { compareDocuments, type PlacedFlow } from './compare-documents.ts';
import { type Swap, swapSteps } from './swap-steps.ts';

function placed(document: JsonObject): PlacedFlow & { readonly document: JsonObject } {
  const parsed = parseFlow(document);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.faults));
  return { flow: parsed.flow, document };
}

const swapAt = (path: string, ...steps: Swap['steps']): Swap => ({ key: path, path, steps });

const document = {
  flow: 'order',
  steps: [
    { task: 'reserve' },
    {
      if: 'f.total > 10',
      then: [{ task: 'ask' }, { task: 'note', with: { a: 1 } }],
      else: [{ switch: 'f.land', cases: { 'de or at': [{ task: 'post' }], fr: [{ task: 'poste' }] } }],
      on_error: [{ match: 'x', do: [{ task: 'mend' }] }],
    },
    { loop: [{ task: 'poll' }, 'break'] },
  ],
} satisfies JsonObject;
const base = placed(document);

function swapped(...swaps: Swap[]): JsonObject {
  const result = swapSteps(base.flow, base.document, swaps);
  if (!result.ok) throw new Error(JSON.stringify(result.faults));
  return result.document;
}

describe('a swap of steps', () => {
  it('replaces a step by one step, or by a sequence of several, and leaves the places of others as they are', () => {
    const changed = swapped(
      swapAt('steps[1].then[0]', { task: 'ask-twice' }),
      swapAt('steps[0]', { task: 'a' }, { task: 'b' }),
    );
    expect(changed['steps']).toMatchObject([
      { sequence: [{ task: 'a' }, { task: 'b' }] },
      { then: [{ task: 'ask-twice' }, { task: 'note' }] },
      { loop: [{ task: 'poll' }, 'break'] },
    ]);
    expect(document.steps[0]).toEqual({ task: 'reserve' });
  });

  it('replaces a block, a handler, a case with an odd name, and a plain word', () => {
    const changed = swapped(
      swapAt('steps[1].else[0].cases["de or at"]', { task: 'x' }, { task: 'y' }),
      swapAt('steps[1].on_error[0].do[0]', { fail: '$(err)' }),
      swapAt('steps[2].loop[1]', { break: true, when: 'f.enough' }),
      swapAt('steps[1].then', { task: 'z' }),
    );
    expect(changed['steps']).toEqual([
      { task: 'reserve' },
      {
        if: 'f.total > 10',
        then: [{ task: 'z' }],
        else: [{ switch: 'f.land', cases: { 'de or at': [{ task: 'x' }, { task: 'y' }], fr: [{ task: 'poste' }] } }],
        on_error: [{ match: 'x', do: [{ fail: '$(err)' }] }],
      },
      { loop: [{ task: 'poll' }, { break: true, when: 'f.enough' }] },
    ]);
    expect(parseFlow(changed).ok).toBe(true);
  });

  it('names places that do not exist, and those that are inside of others', () => {
    const result = swapSteps(base.flow, base.document, [
      swapAt('steps[9]'),
      swapAt('steps[0].with'),
      swapAt('steps[1]', { task: 'a' }),
      swapAt('steps[1].then[0]', { task: 'b' }),
    ]);
    expect(result).toEqual({
      ok: false,
      faults: [
        { path: 'swap["steps[9]"]', message: 'there is no step at steps[9]' },
        { path: 'swap["steps[0].with"]', message: 'there is no step at steps[0].with' },
        { path: 'swap["steps[1].then[0]"]', message: 'is inside of steps[1], which is replaced as well' },
      ],
    });
  });
});

describe('the comparison of two documents', () => {
  it('names replaced, new and removed steps, and those whose fields differ', () => {
    const after = placed(
      swapped(
        swapAt('steps[0]', { task: 'a' }, { task: 'b' }),
        swapAt('steps[1].then[1]', { task: 'note', with: { a: 2 } }),
        swapAt('steps[2]', { wait: '1h' }),
      ),
    );
    expect(compareDocuments(base, after)).toEqual([
      { path: 'steps[0]', from: 'task reserve', to: 'sequence' },
      { path: 'steps[0].sequence[0]', from: null, to: 'task a' },
      { path: 'steps[0].sequence[1]', from: null, to: 'task b' },
      { path: 'steps[1].then[1]', from: '{"task":"note","with":{"a":1}}', to: '{"task":"note","with":{"a":2}}' },
      { path: 'steps[2]', from: 'loop', to: 'wait 1h' },
      { path: 'steps[2].loop[0]', from: 'task poll', to: null },
      { path: 'steps[2].loop[1]', from: 'break', to: null },
    ]);
    expect(compareDocuments(base, base)).toEqual([]);
  });
});
