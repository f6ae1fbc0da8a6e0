/**
 * Expressions that do much with few characters. The conductor evaluates them in the process of the API: none may keep it busy or fill
 * its memory. Before their work was counted, most of these took seconds, or ended the process.
 */
import * as fc from 'fast-check';
import { RE2JS } from 're2js';
import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../json.ts';
import { compileExpression, compileValue } from './expression.ts';
import { estimateSize } from './patterns.ts';

const names = new Set(['f', 'now']);
const many = <T>(count: number, make: (i: number) => T): T[] => Array.from({ length: count }, (_, i) => make(i));
const large = 'x'.repeat(1_000_000);
const fields: JsonObject = {
  large,
  // equal, and not the same object
  equal: `y${large}`.slice(1),
  short: 'x'.repeat(500),
  keys: Object.fromEntries(many(50_000, (i) => [`k${i}`, 1])),
  list: many(30_000, (i) => i),
};
const scope = {
  lookup: (name: string) => (name === 'f' ? fields : new Date(0)),
};

interface Outcome {
  readonly code: string;
  readonly cpuMs: number;
}

function measure(work: () => unknown): Outcome {
  const before = process.cpuUsage();
  let code = 'done';
  try {
    work();
  } catch (error) {
    code = error instanceof Error && 'code' in error ? String(error.code) : String(error);
  }
  const { user, system } = process.cpuUsage(before);
  return { code, cpuMs: (user + system) / 1_000 };
}

function evaluate(source: string): Outcome {
  const result = compileExpression(source, names);
  if (!result.ok) throw new Error(result.faults.join());
  return measure(() => result.compiled.evaluate(scope));
}

const ten = (name: string): string => `[${many(10, () => name).join()}]`;
const doubled = 'abcdefghi'
  .split('')
  .map((name) => `.map(${name}, ${ten(name)})`)
  .join('');

describe('an expression ends soon', () => {
  it.each([
    ['lists within lists, ten times each', `[1]${doubled}`, 'too_large'],
    ['the text of lists within lists', `string([1]${doubled})`, 'too_large'],
    ['the product of a list with itself', 'f.list.map(x, f.list)', 'expression_too_long'],
    ['very many equal texts compared', 'f.list.filter(x, f.large == f.equal)', 'expression_too_long'],
    ['very many long texts put in order', 'f.list.filter(x, f.large < f.equal)', 'expression_too_long'],
    ['very many looks at the keys of a map', 'f.list.filter(x, f.keys.exists(k, true))', 'expression_too_long'],
    ['very many sizes of a map', 'f.list.filter(x, size(f.keys) == 0)', 'expression_too_long'],
    ['very many sizes of a text', 'f.list.filter(x, size(f.large) == 0)', 'expression_too_long'],
    ['very many texts of a map', 'f.list.filter(x, string(f.keys) == "")', 'expression_too_long'],
    ['a long text put between letters', 'f.short.replace("", f.large)', 'expression_too_long'],
    ['a list joined by a long text', 'f.list.map(x, "").join(f.large)', 'expression_too_long'],
    ['errors that name a long key', 'f.list.exists(x, f.keys[f.large] == 1)', 'expression_too_long'],
    ['errors that name lists within lists', `f.list.exists(x, f.list[[1]${doubled}] == 1)`, 'expression_too_long'],
    ['very many time zones', 'f.list.exists(x, now.getHours("Europe/B" + string(x)) == 1)', 'expression_too_long'],
    ['a pattern in a long text', String.raw`f.large.matches('(.?){100}z$')`, 'expression_too_long'],
    ['a pattern that repeats', String.raw`f.large.matches('(x{500}){500}')`, 'expression_error'],
    ['many patterns', `f.list.exists(x, f.short.matches('x{400}' + string(x)))`, 'expression_too_long'],
  ])('%s', (_, source, code) => {
    const outcome = evaluate(source);
    expect([outcome.code, outcome.cpuMs < 500]).toEqual([code, true]);
  });
});

it('A value of many expressions has the fuel of one.', () => {
  const result = compileValue(
    many(1_000, () => '$(f.list.filter(x, x == 1))'),
    names,
  );
  if (!result.ok) throw new Error(result.faults.join());
  const { compiled } = result;
  expect(measure(() => compiled.evaluate(scope)).code).toBe('expression_too_long');
});

it('A text of many long texts is refused before it is put together.', () => {
  const result = compileValue('$(f.large)'.repeat(1_000), names);
  if (!result.ok) throw new Error(result.faults.join());
  const { compiled } = result;
  expect(measure(() => compiled.evaluate(scope)).code).toBe('too_large');
});

it('A value that is nested too deep is refused.', () => {
  let deep: JsonObject = {};
  for (let i = 0; i < 5_000; i++) deep = { deep };
  const result = compileExpression('f', names);
  if (!result.ok) throw new Error(result.faults.join());
  const { compiled } = result;
  expect(measure(() => compiled.evaluate({ lookup: () => deep })).code).toBe('too_large');
});

/** Regular expressions of all constructs, with counted repetitions around each other. */
const patterns = fc.letrec<{ pattern: string }>((tie) => ({
  pattern: fc.oneof(
    { maxDepth: 4 },
    fc.constantFrom(
      'a',
      '.',
      '^',
      '[a-z]',
      '[^\\]x]',
      '[[:alpha:]]',
      String.raw`\pL`,
      String.raw`\p{Greek}`,
      String.raw`\b`,
    ),
    fc.array(tie('pattern'), { minLength: 1, maxLength: 3 }).map((parts) => parts.join('')),
    fc.tuple(tie('pattern'), tie('pattern')).map(([a, b]) => `(?:${a}|${b})`),
    fc.tuple(tie('pattern'), fc.constantFrom('*', '+?', '?', '{3}', '{0,5}', '{2,}')).map(([a, b]) => `(${a})${b}`),
  ),
})).pattern;

it('The size of a pattern is not estimated too low.', () => {
  fc.assert(
    fc.property(patterns, (pattern) => {
      expect(RE2JS.compile(pattern).programSize()).toBeLessThanOrEqual(estimateSize(pattern));
    }),
    { numRuns: 2_000 },
  );
});
