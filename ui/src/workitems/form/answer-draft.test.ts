import { describe, expect, it } from 'vitest';
import { faultsByField, fieldsOf, type FormField, readAnswer, startDraft } from './answer-draft.ts';

const field = (name: string, type: FormField['type'], more: Partial<FormField> = {}): FormField => ({
  name,
  type,
  label: name,
  required: true,
  choices: [],
  ...more,
});

const expense = [
  field('approved', 'boolean'),
  field('comment', 'text', { required: false }),
  field('amount', 'number'),
  field('days', 'integer', { required: false, default: 3 }),
  field('on', 'date', { required: false }),
  field('kind', 'choice', { choices: ['travel', 'meal'], default: 'meal' }),
];

describe('answer to a form', () => {
  it('a form begins with the defaults of its fields, and no boolean is chosen by itself', () => {
    expect(startDraft(expense)).toEqual({ approved: '', comment: '', amount: '', days: '3', on: '', kind: 'meal' });
  });

  it('values have the types of their fields, and empty optional fields stay out, texts excepted', () => {
    const draft = { ...startDraft(expense), approved: 'false', amount: ' 12.50 ', on: '2026-02-28' };
    expect(readAnswer(expense, draft)).toEqual({
      ok: true,
      answer: { approved: false, comment: '', amount: 12.5, days: 3, on: '2026-02-28', kind: 'meal' },
    });
  });

  it('every missing or wrong field has its fault', () => {
    const draft = { approved: '', comment: '', amount: 'much', days: '1.5', on: '2026-02-30', kind: 'other' };
    expect(readAnswer(expense, draft)).toEqual({
      ok: false,
      faults: {
        approved: 'Choose yes or no',
        amount: 'Enter a number such as 12.5',
        days: 'Enter a whole number such as 12',
        on: 'Enter a date such as 2026-01-31',
        kind: 'Choose one',
      },
    });
  });

  it('yes or no is to be chosen even if the field is optional', () => {
    const optional = [field('sure', 'boolean', { required: false })];
    expect(readAnswer(optional, startDraft(optional))).toEqual({ ok: false, faults: { sure: 'Choose yes or no' } });
  });

  it('a choice keeps its type, and the short forms of documents are understood', () => {
    const fields = fieldsOf({
      size: [1, 2],
      approved: 'boolean',
      note: { type: 'text', label: 'Why', required: true },
    });
    expect(fields.map(({ type, label, required }) => [type, label, required])).toEqual([
      ['choice', 'size', false],
      ['boolean', 'approved', false],
      ['text', 'Why', true],
    ]);
    expect(readAnswer(fields, { size: '2', approved: 'true', note: 'x' })).toEqual({
      ok: true,
      answer: { size: 2, approved: true, note: 'x' },
    });
  });

  it('texts that only look like numbers are none', () => {
    const texts = ['0x10', '1,5', 'Infinity', '1e999', '--1'];
    expect(texts.filter((amount) => readAnswer([field('amount', 'number')], { amount }).ok)).toEqual([]);
  });

  it('faults of the server are shown at their fields', () => {
    const faults = [
      { path: 'body.amount', message: 'must be at most 100' },
      { path: 'body', message: 'has an unknown field' },
    ];
    expect(faultsByField(expense, faults)).toEqual({
      amount: 'must be at most 100',
      '': 'body has an unknown field',
    });
  });
});
