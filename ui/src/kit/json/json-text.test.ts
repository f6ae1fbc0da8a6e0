import { describe, expect, it } from 'vitest';
import { parseJson, parseObject } from './json-text.ts';

describe('JSON as people type it', () => {
  it('a valid text has its value, and an empty one is an object without members', () => {
    expect(parseJson('[1, "a"]')).toEqual({ ok: true, value: [1, 'a'] });
    expect(parseObject(' ')).toEqual({ ok: true, value: {} });
    expect(parseObject('{"a": null}')).toEqual({ ok: true, value: { a: null } });
  });

  it('a fault has its line and column', () => {
    const places: readonly (readonly [text: string, place: string])[] = [
      ['{"a": 1,\n "b": x}', 'line 2, column 7'],
      ['{"a": 1,}', 'line 1, column 9'],
      ['[1 2]', 'line 1, column 4'],
      ['[1,, 2]', 'line 1, column 4'],
      ["{'a': 1}", 'line 1, column 2'],
      ['{"a" 1}', 'line 1, column 6'],
      ['{"a": 01}', 'line 1, column 8'],
      ['1 2', 'line 1, column 3'],
      ['{"a": "x\ny"}', 'line 1, column 7'],
      ['[1}', 'line 1, column 3'],
    ];
    const found = places.map(([text]) => [text, parseJson(text)]);
    expect(found).toEqual(places.map(([text, place]) => [text, { ok: false, fault: `Not valid JSON: ${place}` }]));
  });

  it('a text that is not complete says so', () => {
    expect(parseJson('{"a": [1, {} \n')).toEqual({ ok: false, fault: 'Not valid JSON: it ends too early' });
    expect(parseJson('')).toEqual({ ok: false, fault: 'Not valid JSON: it ends too early' });
  });

  it('a list is not an object', () => {
    expect(parseObject('[1]')).toEqual({ ok: false, fault: 'Enter an object, such as {"amount": 12}' });
    expect(parseObject('null')).toMatchObject({ ok: false });
  });
});
