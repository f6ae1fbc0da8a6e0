import { expect, it } from 'vitest';
import { changeOf, type SubscriberDraft } from './subscriber-draft.ts';

const draft: SubscriberDraft = {
  topics: 'orders, invoices',
  callback: ' https://example.com/events ',
  max: '100',
  timeout: '500',
  rate: '',
  strands: '4',
  maxAttempts: '5',
  maxAge: '60000',
  requestTimeout: '',
  filter: '{"type": "update"}',
};
const subscriber = { callback: 'https://example.com/old' };

it('a valid form becomes a request', () => {
  expect(changeOf(draft, subscriber)).toEqual({
    body: {
      topics: ['orders', 'invoices'],
      callback: 'https://example.com/events',
      max: 100,
      timeout: 500,
      rate: null,
      ordering: 'key',
      strands: 4,
      max_attempts: 5,
      max_age: 60_000,
      request_timeout: null,
      filter: { type: 'update' },
    },
  });
});

it('a subscriber that pulls keeps having no callback', () => {
  const change = changeOf(draft, { callback: null });
  expect('body' in change && 'callback' in change.body).toBe(false);
});

it.each([
  ['max', ''],
  ['timeout', 'soon'],
  ['rate', '-1'],
  ['maxAttempts', '1.5'],
  ['strands', ''],
  ['maxAge', '3 days'],
  ['filter', '[1]'],
  ['filter', '{'],
] as const)('the field %s with the text "%s" is a fault', (name, text) => {
  const change = changeOf({ ...draft, [name]: text }, subscriber);
  expect('faults' in change && Object.keys(change.faults)).toEqual([name]);
});
