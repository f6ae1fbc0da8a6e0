import { expect, test } from 'vitest';
import { nameFault, nameLike } from './name-fault.ts';

test('a name that the server takes has no fault', () => {
  for (const name of ['acme', 'a', '0', 'a-b_c', 'a--b', 'x'.repeat(63)]) {
    expect([name, nameFault(name)]).toEqual([name, undefined]);
  }
});

test('the fault of a name is described', () => {
  for (const name of ['A', 'a b', 'a/b', 'ä', 'a\n'])
    expect([name, nameFault(name)]).toEqual([name, expect.stringMatching(/only/)]);
  for (const name of ['-a', 'a-', '_'])
    expect([name, nameFault(name)]).toEqual([name, expect.stringMatching(/begins and ends/)]);
  expect(nameFault('x'.repeat(64))).toMatch(/63/);
  expect(nameFault('')).toMatch(/name/);
});

test('a name that may be given is proposed for one that may not', () => {
  expect(nameLike('My DB/x')).toBe('my-db-x');
  for (const name of ['My DB/x', '_a_', '日本', `${'a'.repeat(62)}-b`, ''])
    expect([name, nameFault(nameLike(name))]).toEqual([name, undefined]);
  expect(nameLike('acme')).toBe('acme');
});
