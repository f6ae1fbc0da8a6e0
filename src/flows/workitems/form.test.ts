/** Forms of human tasks: every fault of a form and of an answer is found, and defaults complete an answer. */
import { expect, it } from 'vitest';
import { textWith } from '../../../test/harness/expected.ts';
import type { Json, JsonObject } from '../json.ts';
import { checkAnswer, findFormFaults, formLimits } from './form.ts';

const form: JsonObject = {
  approved: 'boolean',
  comment: 'text',
  amount: { type: 'number', label: 'Amount in EUR', required: true },
  pieces: 'integer',
  on: 'date',
  colour: ['red', 'green'],
  size: { type: 'integer', choices: [36, 38, 40], default: 38 },
};

it('a form with every kind of field has no fault', () => {
  expect(findFormFaults(form)).toEqual([]);
  expect(findFormFaults({})).toEqual([]);
});

const badForms: [Json, string, RegExp][] = [
  ['boolean', '', /must be a mapping/],
  [[], '', /must be a mapping/],
  [{ 'a b': 'text' }, '["a b"]', /named with letters/],
  [{ a: 'bolean' }, 'a', /must be one of boolean, text.*did you mean boolean/],
  [{ a: 7 }, 'a', /must be one of/],
  [{ a: [] }, 'a', /at least one choice/],
  [{ a: [true] }, 'a[0]', /text or a number/],
  [{ a: {} }, 'a', /needs a type/],
  [{ a: { type: 'string' } }, 'a.type', /must be one of/],
  [{ a: { type: 'text', requird: true } }, 'a.requird', /did you mean required/],
  [{ a: { type: 'text', required: 'yes' } }, 'a.required', /true or false/],
  [{ a: { type: 'text', label: 7 } }, 'a.label', /must be text/],
  [{ a: { type: 'integer', choices: [1, 'two'] } }, 'a.choices[1]', /whole number/],
  [{ a: { type: 'integer', default: 1.5 } }, 'a.default', /whole number/],
  [{ a: { choices: ['x'], default: 'y' } }, 'a.default', /must be one of "x"/],
];
it.each(badForms)('the fault of the form %j is found at %s', (bad, path, message) => {
  expect(findFormFaults(bad)).toEqual([{ path, message: expect.stringMatching(message) as string }]);
});

it('a form lists all its faults, and has a limited number of fields', () => {
  expect(findFormFaults({ a: 'bool', b: 'str', c: [] })).toHaveLength(3);
  const many = Object.fromEntries(Array.from({ length: formLimits.fields + 1 }, (_, i) => [`f${i}`, 'bool']));
  expect(findFormFaults(many)).toEqual([{ path: '', message: textWith('fields; split the task') }]);
});

it('texts with expressions are not judged before they are evaluated', () => {
  expect(findFormFaults({ a: '$(f.type)', b: { type: 'text', choices: '$(f.names)', default: '$(f.name)' } })).toEqual(
    [],
  );
  expect(findFormFaults('$(f.form)')).toEqual([]);
});

it('a valid answer keeps its fields, leaves out those that are missing, and gets defaults', () => {
  const answer = { approved: true, amount: 12.5, on: '2024-02-29', colour: 'red', comment: null };
  expect(checkAnswer(form, answer)).toEqual({
    ok: true,
    answer: { approved: true, amount: 12.5, on: '2024-02-29', colour: 'red', size: 38 },
  });
});

const badAnswers: [Json, string, RegExp][] = [
  [{ approved: 'true', amount: 1 }, 'approved', /true or false/],
  [{ comment: 7, amount: 1 }, 'comment', /must be text/],
  [{}, 'amount', /is required/],
  [{ amount: null }, 'amount', /is required/],
  [{ amount: '1' }, 'amount', /must be a number/],
  [{ pieces: 1.5, amount: 1 }, 'pieces', /whole number/],
  [{ on: '2023-02-29', amount: 1 }, 'on', /must be a date/],
  [{ on: '29.2.2024', amount: 1 }, 'on', /must be a date/],
  [{ colour: 'blue', amount: 1 }, 'colour', /must be one of "red", "green"/],
  [{ size: 37, amount: 1 }, 'size', /must be one of 36, 38, 40/],
  [{ aproved: true, amount: 1 }, 'aproved', /not a field of the form; did you mean approved/],
  [true, '', /must be an object with approved, comment/],
];
it.each(badAnswers)('the fault of the answer %j is found at %s', (answer, path, message) => {
  expect(checkAnswer(form, answer)).toEqual({
    ok: false,
    faults: [{ path, message: expect.stringMatching(message) as string }],
  });
});

it('an answer lists all its faults', () => {
  const checked = checkAnswer(form, { approved: 1, on: 'x', more: 1 });
  expect(checked.ok ? [] : checked.faults.map(({ path }) => path)).toEqual(['more', 'approved', 'amount', 'on']);
});

it('an answer of very many unknown fields lists some of them', () => {
  const answer = Object.fromEntries(Array.from({ length: 9_000 }, (_, i) => [`aproved${i}`, 1]));
  const checked = checkAnswer(form, answer);
  expect(checked.ok ? 0 : checked.faults.length).toBeLessThan(100);
});

it('without a form, any answer is valid', () => {
  expect(checkAnswer({}, [1, 2])).toEqual({ ok: true, answer: [1, 2] });
});

it('a field called like a member of every object is a field like others', () => {
  expect(checkAnswer({ constructor: 'text' }, {})).toEqual({ ok: true, answer: {} });
  expect(checkAnswer({ a: 'text' }, { constructor: 'x' })).toMatchObject({ ok: false });
});
