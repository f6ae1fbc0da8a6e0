import { expect, test } from 'vitest';
import { draftOf, faultOf, paramsOf, paramsToSend } from './params.ts';

const standard = paramsOf('{"name": "x", "params": {"region": "north", "days": 3, "dry": false}}');

test('parameters that equal the document are not sent', () => {
  expect(paramsToSend(standard, draftOf(standard))).toEqual({});
});

test('a text parameter stays text, and a number stays a number', () => {
  const draft = { known: { ...draftOf(standard).known, region: '12', days: '7' }, others: '' };
  expect(paramsToSend(standard, draft)).toEqual({ region: '12', days: 7 });
});

test('other parameters are an object and override the fields', () => {
  const draft = { ...draftOf(standard), others: '{"days": 9, "extra": [1]}' };
  expect(paramsToSend(standard, draft)).toEqual({ days: 9, extra: [1] });
});

test('parameters that are not valid JSON are not sent', () => {
  expect(paramsToSend(standard, { ...draftOf(standard), others: '[1]' })).toBeUndefined();
  expect(paramsToSend(standard, { known: { days: 'seven' }, others: '' })).toBeUndefined();
  expect(faultOf('north', 'any')).toMatch(/quotes/);
  expect(paramsOf('{}')).toEqual({});
});
