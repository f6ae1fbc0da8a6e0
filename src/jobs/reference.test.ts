import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { nameFault } from '../documents/name.ts';
import { formatReference, parseReference, type Reference } from './reference.ts';
import { longestSpanMs } from '../documents/values.ts';

const local: Reference = { project: null, job: null, kind: 'task', name: 'a', offsetMs: 0 };

describe('a reference', () => {
  test.each<[string, Reference]>([
    ['task/a', local],
    ['trigger/a', { ...local, kind: 'trigger' }],
    ['job/task/a', { ...local, job: 'job' }],
    ['project/job/task/a', { ...local, project: 'project', job: 'job' }],
    ['task/a@1d', { ...local, offsetMs: 86_400_000 }],
    ['job/trigger/a@PT1H', { ...local, job: 'job', kind: 'trigger', offsetMs: 3_600_000 }],
    ['task/task/task', { ...local, job: 'task', name: 'task' }],
    ['trigger/task/trigger', { ...local, job: 'trigger', name: 'trigger' }],
    ['task/my task-2.0 (ü) 🚀', { ...local, name: 'my task-2.0 (ü) 🚀' }],
  ])('the reference %j is parsed and formatted back', (text, reference) => {
    expect(parseReference(text)).toEqual({ ok: true, value: reference });
    expect(parseReference(formatReference(reference))).toEqual({ ok: true, value: reference });
  });

  test.each<[string, string]>([
    ['', 'is not a reference'],
    ['a', 'is not a reference'],
    ['tasks/a', 'is not a reference'],
    ['task/', 'must not be empty'],
    ['/task/a', 'must not be empty'],
    ['a/b/c/task/d', 'is not a reference'],
    ['task/a/b', 'is not a reference'],
    ['task/ a', 'must not begin or end with a space'],
    ['task/a @1d', 'must not begin or end with a space'],
    ['task/a@1d@1d', 'more than one @'],
    ['task/a@', 'is empty'],
    ['task/a@0s', 'must be longer than zero'],
    ['task/a@-1d', 'must not be negative'],
    ['task/a@soon', 'where a number is expected'],
    ['task/a@2000y', 'must not be longer than 1000 years'],
    ['task/a\u0000', 'control'],
  ])('the reference %j is rejected', (text, message) => {
    expect(parseReference(text)).toEqual({ ok: false, message: expect.stringContaining(message) as unknown });
  });

  test('a reference with any valid names survives formatting and parsing', () => {
    const name = fc
      .string({ minLength: 1, maxLength: 30, unit: 'grapheme' })
      .filter((text) => nameFault(text) === undefined);
    const owner = fc.oneof(
      fc.record({ project: name, job: name }),
      fc.record({ project: fc.constant(null), job: fc.option(name) }),
    );
    const offsetMs = fc.integer({ min: 0, max: longestSpanMs });
    const kind = fc.constantFrom('task' as const, 'trigger' as const);
    fc.assert(
      fc.property(owner, kind, name, offsetMs, (names, kind, name, offsetMs) => {
        const reference = { ...names, kind, name, offsetMs };
        expect(parseReference(formatReference(reference))).toEqual({ ok: true, value: reference });
      }),
    );
  });
});

describe('a name', () => {
  test.each(['a', 'a b', 'ä-ö.ü!', '日本', '👨‍👩‍👧', 'x'.repeat(200), '🚀'.repeat(200), 'a:b[c]{d}'])(
    'a name may be %j',
    (name) => {
      expect(nameFault(name)).toBeUndefined();
    },
  );

  test.each([
    '',
    'a/b',
    'a@b',
    ' a',
    'a ',
    'a\tb',
    'a\nb',
    'a\u0000',
    'a\u2028b',
    '\ud800',
    'a\u202eb',
    '\ufeffa',
    'x'.repeat(201),
  ])('a name may not be %j', (name) => {
    expect(nameFault(name)).toBeTypeOf('string');
  });
});
