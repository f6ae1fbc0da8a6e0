import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { exampleDocument, projectIn, withProject } from './new-document.ts';
import { yamlOf } from '../../document/document-text.ts';

test('the example is valid YAML with any project name', () => {
  expect(parse(exampleDocument('shop: a', '2026-01-31'))).toMatchObject({
    project: 'shop: a',
    triggers: [{ start: '2026-01-31T00:00:00Z' }],
    tasks: [{ name: 'collect' }, { name: 'report', depends: ['task/collect'] }],
  });
});

test('withProject leaves the rest of the text unchanged', () => {
  const text = '# mine\nname: x\nproject: "old"   # why\ntasks: []\n';
  expect(withProject(text, 'new one')).toBe('# mine\nname: x\nproject: new one   # why\ntasks: []\n');
  expect(projectIn(withProject(text, 'a: b'))).toBe('a: b');
  expect(withProject('name: x\n', 'shop')).toBe('project: shop\nname: x\n');
  expect(projectIn('[')).toBe('');
});

test('a document converted to YAML parses to the same document', () => {
  const document = {
    tasks: [{ name: 'yes', process: { command: ['a\nb', '07', ' x ', 'null', '2026-01-01T00:00:00Z'] } }],
    params: { n: 1e21, on: true },
    name: 'x',
  };
  const text = yamlOf(document);
  expect(parse(text)).toEqual(document);
  expect(text.startsWith('name: x\n')).toBe(true);
  expect(yamlOf({ depends: ['a b', 'c'], args: ['x'.repeat(90)] })).toBe(
    `depends: [a b, c]\nargs:\n  - ${'x'.repeat(90)}\n`,
  );
});
