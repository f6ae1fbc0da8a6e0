import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Json, JsonObject } from '../json.ts';
import { compileExpression, compileValue } from './expression.ts';

const names = new Set(['f', 'v', 'now', 'it']);

function evaluate(source: string, fields: JsonObject = {}): Json {
  const result = compileExpression(source, names);
  if (!result.ok) throw new Error(result.faults.join(' | '));
  return result.compiled.evaluate({ lookup: (name) => (name === 'now' ? new Date(0) : name === 'f' ? fields : {}) });
}

function faults(source: string): string {
  const result = compileExpression(source, names);
  return result.ok ? '' : result.faults.join(' | ');
}

function fill(value: Json, fields: JsonObject = {}): Json {
  const result = compileValue(value, names);
  if (!result.ok) throw new Error(result.faults.join(' | '));
  return result.compiled.evaluate({ lookup: (name) => (name === 'f' ? fields : {}) });
}

describe('values', () => {
  it.each<[string, JsonObject, Json]>([
    ['f.count + 1', { count: 1 }, 2],
    ['7 / 2', {}, 3.5],
    ['int(7 / 2) % 2', {}, 1],
    ['f.a - 1 * 2', { a: 5 }, 3],
    ['"a" + "b"', {}, 'ab'],
    ['[1] + f.l', { l: [2] }, [1, 2]],
    ['{"a": f.x, "b": [f.x, 2.5]}', { x: 3 }, { a: 3, b: [3, 2.5] }],
    ['f.items.filter(t, !has(t.failed)).map(t, t.n * 2)', { items: [{ n: 1 }, { failed: 1 }, { n: 3 }] }, [2, 6]],
    ['f.items.map(x, x > 1, x + 1)', { items: [1, 2, 3] }, [3, 4]],
    ['f.m.map(k, k + "!")', { m: { a: 1, b: 2 } }, ['a!', 'b!']],
    ['f.l.exists(x, x == 2) && f.l.all(x, x < 3) && f.l.exists_one(x, x == 1)', { l: [1, 2] }, true],
    [
      'f.l.map(x, f.l.map(y, x * y))',
      { l: [1, 2] },
      [
        [1, 2],
        [2, 4],
      ],
    ],
    ['f.l.map(x, x.map(x, x + 1))', { l: [[1], [2]] }, [[2], [3]]],
    ['f.?a.orValue(1)', {}, 1],
    ['f.?a.?b.orValue(1)', { a: { b: 2 } }, 2],
    ['f[?"a b"].orValue("none")', {}, 'none'],
    ['f.?a.hasValue()', { a: null }, true],
    ['f.l[f.n]', { l: [1, 2], n: 1 }, 2],
    ['f["a b"]', { 'a b': 1 }, 1],
    ['has(f.a) ? "yes" : "no"', {}, 'no'],
    ['f.state in ["done", "failed"]', { state: 'done' }, true],
    ['"a" in f', { a: 1 }, true],
    ['f.a == {"b": [1, 2]}', { a: { b: [1, 2] } }, true],
    ['f.a == "1"', { a: 1 }, false],
    ['f.name.matches("^a+$")', { name: 'aaa' }, true],
    ['f.name.split(",").join("-")', { name: 'a,b' }, 'a-b'],
    ['size("😀") + size([1]) + size({"a": 1})', {}, 3],
    ['string(now)', {}, '1970-01-01T00:00:00.000Z'],
    ['now + duration("1h")', {}, '1970-01-01T01:00:00.000Z'],
    ['timestamp("2026-03-29T01:30:00Z").getHours("Europe/Berlin")', {}, 3],
    ['timestamp("2026-11-18T00:00:00Z") - now > duration("1d")', {}, true],
    ['now - now', {}, '0s'],
    ['max(f.l) - min(3, 2)', { l: [1, 9] }, 7],
    ['f.l.sort().reverse().slice(0, 2).sum()', { l: [1, 3, 2] }, 5],
    ['f.a || f.b', { a: false, b: true }, true],
    ['f.missing || true', {}, true],
    ['f.missing && false', {}, false],
    ['f.l.exists(x, x.a == 1)', { l: [{}, { a: 1 }] }, true],
    ['-f.n', { n: 0 }, 0],
  ])('%s of %j is %j', (source, fields, expected) => {
    expect(evaluate(source, fields)).toEqual(expected);
  });
});

describe('errors at evaluation', () => {
  it.each<[string, JsonObject, string]>([
    ['f.missing', {}, 'there is no member missing'],
    ['f.constructor', {}, 'there is no member constructor'],
    ['f.a.toString', { a: 'x' }, 'a string has no member toString'],
    ['f["__proto__"]', {}, 'there is no member "__proto__"'],
    ['has(f.a.b)', { a: 1 }, 'has(…) looks into a number, which has no members'],
    ['f.l[2]', { l: [1] }, 'there is no member 2'],
    ['f.l[-1]', { l: [1] }, 'there is no member -1'],
    ['f.a + 1', { a: 'x' }, 'string + number is not defined'],
    ['1 / f.n', { n: 0 }, 'a division by zero'],
    ['f.n * f.n', { n: 1e200 }, 'the product is not a number that JSON can hold'],
    ['f.a < f.b', { a: 1, b: '2' }, 'number and string have no order'],
    ['f.a ? 1 : 2', { a: 1 }, 'a ? b : c needs true or false, not a number'],
    ['f.?a', {}, 'an optional value is not a result; end it with .orValue(…)'],
    ['f.a.matches("(")', { a: '' }, 'matches: error parsing regexp: missing closing ): `(`'],
    ['timestamp(f.a)', { a: 'soon' }, 'timestamp("soon"): is not an RFC 3339 timestamp with an offset'],
    ['f.missing || false', {}, 'there is no member missing'],
    ['f.l.all(x, x.a == 1)', { l: [{}, { a: 1 }] }, 'there is no member a'],
  ])('%s of %j fails: %s', (source, fields, message) => {
    expect(() => evaluate(source, fields)).toThrow(message);
  });
});

describe('faults when an expression is compiled', () => {
  it.each([
    ['in.x', 'is not an expression: unexpected token: IN, near "in.x"'],
    ['1 +', 'is not an expression: unexpected token: the end'],
    ['g.x', 'names the unknown variable g, near "g.x"'],
    ['f.l.fliter(x, x)', 'calls the unknown method fliter; did you mean filter?, near "f.l.fliter(x, x)"'],
    ['siez(f.l)', 'calls the unknown function siez; did you mean size?, near "siez(f.l)"'],
    ['size()', 'gives size 0 arguments instead of 1, near "size()"'],
    ['has(f)', 'has(…) takes a path such as f.order, near "has(f)"'],
    ['f.l.map(1, 2)', 'is not an expression: map(var, transform) invalid predicate iteration variable, near "1, 2)"'],
    ['b"x"', 'has a literal that JSON cannot hold, near "b\\"x\\""'],
    ['f.a + g + h', 'names the unknown variable g, near "g + h" | names the unknown variable h, near "h"'],
  ])('%s: %s', (source, message) => {
    expect(faults(source)).toBe(message);
  });

  it('Members that are read are known, so that an undo keeps no others.', () => {
    const reads = (source: string): string[] => {
      const result = compileExpression(source, names);
      return result.ok ? [...result.compiled.reads].toSorted() : [];
    };
    expect(reads('f.a.b + f.c + size(v.list)')).toEqual(['f.a', 'f.c', 'v.list']);
    expect(reads('f.a + f["b"]')).toEqual(['f', 'f.a']);
    expect(reads('has(f.a) && [1].exists(f, f.b == 1)')).toEqual(['f.a']);
  });
});

describe('texts with expressions', () => {
  it.each<[Json, JsonObject, Json]>([
    ['$(f.n)', { n: 1 }, 1],
    ['$(f.l)', { l: [1] }, [1]],
    ['n is $(f.n), l is $(f.l)', { n: 1, l: [1] }, 'n is 1, l is [1]'],
    ['$(f.n)$(f.n)', { n: 1 }, '11'],
    ['$$(date) costs $5', {}, '$(date) costs $5'],
    ['$(f.a + ")(")', { a: 'x' }, 'x)('],
    ["$({'a': f.a})", { a: 1 }, { a: 1 }],
    [{ a: ['$(f.n)', 2], b: null }, { n: 1 }, { a: [1, 2], b: null }],
    ['', {}, ''],
  ])('%j of %j is %j', (value, fields, expected) => {
    expect(fill(value, fields)).toEqual(expected);
  });

  it("A shell's substitution is named as such.", () => {
    const result = compileValue('echo $(date)', names);
    expect(result).toEqual({
      ok: false,
      faults: ['names the unknown variable date, near "date"; write $$( for a literal $('],
    });
    expect(compileValue('echo $(date', names)).toMatchObject({ ok: false });
  });

  it('Any text without $( is itself.', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        fc.pre(!text.includes('$('));
        expect(fill(text)).toBe(text);
      }),
    );
  });
});

describe('evaluation always ends', () => {
  const long = Array.from({ length: 2_000 }, (_, i) => i);

  it.each([
    ['nested macros', 'f.l.map(a, f.l.map(b, f.l.map(c, a + b + c)))'],
    ['nested tests', 'f.l.exists(a, f.l.exists(b, f.l.exists(c, a + b + c < 0)))'],
    ['tests that fail', 'f.l.all(a, f.l.all(b, f.l.all(c, f.none)))'],
    ['alternatives that fail', 'f.l.exists(a, f.l.exists(b, f.none) || f.l.exists(b, f.none))'],
    ['long lists', 'f.l.map(a, f.l + f.l)'],
    ['long texts', 'f.l.map(a, f.text + f.text)'],
    ['comparisons', 'f.l.map(a, f.l == f.same)'],
    ['patterns', 'f.l.map(a, f.text.matches("(a*)*b"))'],
  ])('%s run out of fuel', (_, source) => {
    const before = process.cpuUsage();
    expect(() => evaluate(source, { l: long, same: [...long], text: 'a'.repeat(100_000) })).toThrow(
      'the expression takes too long',
    );
    // processor time, because the machine may be busy
    const { user, system } = process.cpuUsage(before);
    expect((user + system) / 1_000).toBeLessThan(1_000);
  });

  it('No expression throws anything else, whatever its text is.', () => {
    const tokens =
      'f .a .l [0] + - / ( ) 1 "x" && || ! == < in ? : .map(x,x) .size() size( , { } has( now duration("1h") .?b .orValue(1)';
    const token = fc.constantFrom(...tokens.split(' ').map((text) => (text === 'in' ? ' in ' : text)));
    fc.assert(
      fc.property(fc.array(token, { maxLength: 12 }), (tokens) => {
        const result = compileExpression(tokens.join(''), names);
        if (!result.ok) return;
        try {
          result.compiled.evaluate({ lookup: (name) => (name === 'now' ? new Date(0) : { a: 1, l: [1, 2] }) });
        } catch (error) {
          expect(error).toMatchObject({ name: 'ExpressionError' });
        }
      }),
      { numRuns: 2_000 },
    );
  });
});

describe('results that would fill the memory', () => {
  const list = (length: number): number[] => Array.from({ length }, (_, i) => i);
  const map = Object.fromEntries(list(20_000).map((i) => [`k${i}`, i]));
  it.each<[string, JsonObject]>([
    ['f.l.map(x, f.big)', { l: list(20_000), big: list(10_000) }],
    ['string(f.l.map(x, f.text))', { l: list(1_000), text: 'x'.repeat(1_000_000) }],
    ['f.text.replace("x", f.text)', { text: 'x'.repeat(100_000) }],
    ['f.texts.join(f.text)', { texts: list(5_000).map(String), text: 'x'.repeat(1_000_000) }],
    ['f.l.all(x, f.m.keys() != x)', { l: list(15_000), m: map }],
    ['f.l.all(x, f.m.exists(k, true))', { l: list(15_000), m: map }],
    ['f.text.matches("(a?){60}(b?){60}c")', { text: 'a'.repeat(500_000) }],
  ])('%s ends early', (source, fields) => {
    expect(() => evaluate(source, fields)).toThrow(
      expect.objectContaining({ code: expect.stringMatching(/^(expression_too_long|too_large)$/) as unknown }),
    );
  });
});
