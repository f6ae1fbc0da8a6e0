import { describe, expect, it } from 'vitest';
import type { TreeStep } from '../tree/tree-model.ts';
import { readPatch, replaceable, sourceOf } from './patch-draft.ts';

const document = {
  flow: 'expense',
  steps: [{ task: 'ask' }, { if: 'f.ok', then: [{ task: 'pay', with: { amount: '$(f.amount)' } }] }],
};
const path = 'steps[1].then[0]';

describe('patch of an execution', () => {
  it('the source of a step is a list of one step, so that more can be added', () => {
    expect(sourceOf(document, path)).toBe('- task: pay\n  with:\n    amount: $(f.amount)\n');
    expect(sourceOf(document, 'steps[7]')).toBe('');
  });

  it('fields and steps that differ are sent', () => {
    const steps = '- task: pay\n- task: tell\n';
    expect(readPatch({ fields: '{"amount": 3}', path, steps }, sourceOf(document, path))).toEqual({
      ok: true,
      patch: { fields: { amount: 3 }, swap: { [path]: [{ task: 'pay' }, { task: 'tell' }] } },
      isEmpty: false,
    });
  });

  it('a step that stays as it is is no change', () => {
    const source = sourceOf(document, path);
    expect(readPatch({ fields: '', path, steps: source }, source)).toEqual({ ok: true, patch: {}, isEmpty: true });
  });

  it('one step may be written without a list, and an empty list removes it', () => {
    const source = sourceOf(document, path);
    expect(readPatch({ fields: '', path, steps: 'task: tell' }, source)).toMatchObject({
      patch: { swap: { [path]: [{ task: 'tell' }] } },
    });
    expect(readPatch({ fields: '', path, steps: '[]' }, source)).toMatchObject({ patch: { swap: { [path]: [] } } });
  });

  it('text that is no list of steps is a fault with its line', () => {
    expect(readPatch({ fields: '', path, steps: '- task: a\n- [' }, '')).toMatchObject({
      ok: false,
      stepsFault: expect.stringMatching(/^Line 2: /) as string,
    });
    expect(readPatch({ fields: '', path, steps: 'hello' }, '')).toMatchObject({ ok: false });
    expect(readPatch({ fields: '{', path: '', steps: '' }, '')).toEqual({ ok: false, stepsFault: undefined });
  });

  it('all steps can be replaced, but not the blocks that hold them', () => {
    const step = (at: string, more: Partial<TreeStep>): TreeStep => ({
      at,
      path: '',
      verb: 'task',
      title: '',
      tag: null,
      branch: null,
      state: 'idle',
      children: [],
      ...more,
    });
    const pay = step('0_1_0_0', { path, title: 'pay' });
    const block = step('0_1_0', { path: 'steps[1].then', branch: 'then', verb: 'sequence', children: [pay] });
    const choice = step('0_1', { path: 'steps[1]', verb: 'if', title: 'f.ok', children: [block] });
    expect(replaceable(step('0', { verb: 'sequence', children: [choice] }))).toEqual([
      { value: 'steps[1]', label: 'steps[1]: if f.ok' },
      { value: path, label: `${path}: task pay` },
    ]);
  });
});
