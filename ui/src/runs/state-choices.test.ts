import { expect, test } from 'vitest';
import { stateChoice } from './state-choices.ts';

test('what the address asks for is a choice, or else all', () => {
  expect(stateChoice('active')).toEqual({ value: 'active', states: 'active' });
  expect(stateChoice('failed')).toEqual({ value: 'failed', states: 'failure,timeout,error' });
  for (const asked of [undefined, '', 'retry', 'nonsense']) {
    expect(stateChoice(asked)).toEqual({ value: '', states: undefined });
  }
});
