import { expect, it } from 'vitest';
import { mask, maskerOf, maskSealed } from './masking.ts';

const flow = { sealed: ['f.card.number', 'f.pin'] };

it('A sealed field is masked at its place, in copies of fields, and where a task got its value under another name.', () => {
  const state = {
    f: { card: { number: '4929 8801', owner: 'kim' }, pin: 12, amount: 4929 },
    nodes: { n: { memory: { input: { account: '4929 8801', text: 'pay 4929 8801 now', pin: 12, count: 12 } } } },
  };
  expect(maskSealed(flow, state)).toEqual({
    f: { card: { number: mask, owner: 'kim' }, pin: mask, amount: 4929 },
    nodes: { n: { memory: { input: { account: mask, text: `pay ${mask} now`, pin: mask, count: 12 } } } },
  });
});

it('A value without the fields is masked by those of the execution.', () => {
  const fields = { card: { number: '4929 8801' }, pin: 8_801 };
  expect(maskerOf(flow, [fields])({ echo: ['4929 8801', 8_801, 8_802] })).toEqual({ echo: [mask, mask, 8_802] });
});

it('A flow without sealed fields shows everything.', () => {
  const value = { pin: 1 };
  expect(maskSealed({ sealed: [] }, value)).toBe(value);
});

it('A sealed text is masked inside of JSON, where it is written with escapes.', () => {
  const fields = { card: { number: 'say "4929"' } };
  expect(maskerOf(flow, [fields])({ text: JSON.stringify(fields) })).toEqual({ text: `{"card":{"number":"${mask}"}}` });
});

it('Among very many sealed values, every text is masked as a whole.', () => {
  const numbers = Array.from({ length: 20_000 }, (_, i) => `number ${i}`);
  const state = { f: { card: { number: numbers }, names: numbers.map((name) => `a ${name}`) } };
  const before = process.cpuUsage();
  // when each was searched in each, this took a minute
  expect(maskSealed(flow, state).f.names.every((text) => text === mask)).toBe(true);
  expect(process.cpuUsage(before).user / 1_000).toBeLessThan(1_000);
});
