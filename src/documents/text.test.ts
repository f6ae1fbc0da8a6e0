import { describe, expect, test } from 'vitest';
import { readDocument, readDocuments } from './text.ts';

function fault(text: string, format: 'json' | 'yaml' = 'yaml'): string {
  const read = readDocument(text, format);
  return read.ok ? '' : read.faults.map(({ message }) => message).join(' | ');
}

describe('YAML', () => {
  test('YAML is read as version 1.2 with the core schema, so keys and timestamps stay text', () => {
    const text = 'on: [failure]\nyes: no\nat: 2024-01-01T00:00:00Z\nn: 0o17';
    expect(readDocument(text, 'yaml')).toEqual({
      ok: true,
      value: { on: ['failure'], yes: 'no', at: '2024-01-01T00:00:00Z', n: 15 },
    });
    expect(readDocument('%YAML 1.1\n---\non: yes', 'yaml')).toEqual({ ok: true, value: { on: 'yes' } });
  });

  test('an alias is replaced by its value, and merge keys are not merged', () => {
    expect(readDocument('a: &x {k: v}\nb: *x', 'yaml')).toEqual({ ok: true, value: { a: { k: 'v' }, b: { k: 'v' } } });
    expect(readDocument('a: &x {k: v}\nb: {<<: *x}', 'yaml')).toMatchObject({ value: { b: { '<<': { k: 'v' } } } });
  });

  test('faults in YAML give line and column', () => {
    expect(fault('a: 1\nb:\n\t- c')).toContain('line 3, column 1: Tabs are not allowed');
    expect(fault('a: 1\nb: "x')).toContain('line 2, column ');
    expect(fault('a:\n  x: 1\n  x: 2')).toBe('line 3, column 3: "x" is given twice');
    expect(fault('a: !wrong 1')).toBe('line 1, column 4: Unresolved tag: !wrong');
    expect(fault('a: *nobody')).toContain('nobody');
  });

  test('a text of several documents is accepted only by readDocuments', () => {
    const text = '# a file\n---\na: 1\n---\n# empty\n---\nb: 2\n...\n';
    expect(readDocuments(text)).toEqual({
      ok: true,
      documents: [
        { value: { a: 1 }, line: 3 },
        { value: { b: 2 }, line: 7 },
      ],
    });
    expect(fault(text)).toBe('line 7: a second document begins; only one is expected');
    expect(readDocuments('')).toEqual({ ok: true, documents: [] });
    expect(readDocuments('a: 1\n---\nb: [')).toMatchObject({ ok: false });
  });

  test.each(['', '\n', '# nothing', '---', '~'])('an empty document is rejected: %j', (text) => {
    expect(fault(text)).toBe('the document is empty');
  });

  test.each<[string, string]>([
    ['open brackets', '['.repeat(20_000)],
    ['brackets', '['.repeat(20_000) + ']'.repeat(20_000)],
    ['braces', '{a: '.repeat(20_000)],
    ['dashes', `${'- '.repeat(20_000)}x`],
    ['questions', '? '.repeat(20_000)],
    ['indents', Array.from({ length: 1_000 }, (_, i) => `${' '.repeat(i)}a:`).join('\n')],
  ])('endless nesting in %s is rejected, and the process survives', (_, text) => {
    expect(fault(text)).toBe('nested deeper than 100 levels');
  });

  test('YAML may be nested 100 levels deep, and brackets inside texts do not count', () => {
    // the innermost list is empty, and has level 100
    expect(readDocument(`${'['.repeat(100)}${']'.repeat(100)}`, 'yaml').ok).toBe(true);
    expect(fault(`${'['.repeat(101)}${']'.repeat(101)}`)).toBe('nested deeper than 100 levels');
    const open = '['.repeat(500);
    const value = { a: open, b: `${open}\n`, c: `it's ${open}` };
    expect(readDocument(`a: "${open}"\nb: |\n  ${open}\nc: it's ${open} # ${open}`, 'yaml')).toEqual({
      ok: true,
      value,
    });
  });

  test('YAML that is too long or has too many aliases is rejected', () => {
    expect(fault(`a: &x 1\nb:\n${'- *x\n'.repeat(1_001)}`)).toBe('more than 1000 aliases');
    expect(fault('a'.repeat(1_000_001))).toContain('send it as JSON');
  });

  test.each(['"', '[', ',', '-', '\n', '%'])('a text of nothing but %j is rejected before it is tokenized', (mark) => {
    const startedMs = performance.now();
    expect(fault(mark.repeat(999_000))).toMatch(/^more than 100000 lines and punctuation marks/);
    expect(performance.now() - startedMs).toBeLessThan(1_000);
  });

  test('a duplicate key is found among 20,000 keys', () => {
    const keys = Array.from({ length: 20_000 }, (_, i) => `k${i}: 1`).join('\n');
    expect(fault(`${keys}\nk7: 2`)).toBe('line 20001, column 1: "k7" is given twice');
  });
});

describe('JSON', () => {
  test('a JSON document is read', () => {
    expect(readDocument('{"a": [1, null]}', 'json')).toEqual({ ok: true, value: { a: [1, null] } });
  });

  test('faults in JSON give line and column if Node reports them', () => {
    expect(fault('{"a": 1,\n "b": }', 'json')).not.toBe('');
    expect(fault('{"a": 1\n "b": 2}', 'json')).toContain('line 2, column 2');
    expect(fault(' ', 'json')).toBe('the document is empty');
  });

  test('JSON of any depth is read without an exception', () => {
    expect(() => readDocument('['.repeat(1_000_000), 'json')).not.toThrow();
  });
});
