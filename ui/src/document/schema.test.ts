import { expect, test } from 'vitest';
import { type Schema, schemasAt, wayTo, wordsOf } from './schema.ts';

const lines = `project: shop
tasks:
  - name: export
    depends:
      - trigger/daily
    process:
      command: [echo]

      cwd: /
  - name: send
    retry:
triggers:
- name: daily
  catchup: none`.split('\n');

test('wayTo finds the fields that a line belongs to', () => {
  expect(wayTo(lines, 0)).toEqual([]);
  expect(wayTo(lines, 2)).toEqual(['tasks', '-']);
  expect(wayTo(lines, 3)).toEqual(['tasks', '-']);
  expect(wayTo(lines, 4)).toEqual(['tasks', '-', 'depends', '-']);
  expect(wayTo(lines, 6)).toEqual(['tasks', '-', 'process']);
  expect(wayTo(lines, 8)).toEqual(['tasks', '-', 'process']);
  expect(wayTo(lines, 9)).toEqual(['tasks', '-']);
  expect(wayTo(lines, 11)).toEqual([]);
});

test('a list may have the same indentation as its field', () => {
  expect(wayTo(lines, 12)).toEqual(['triggers', '-']);
  expect(wayTo(lines, 13)).toEqual(['triggers', '-']);
});

test('an empty line belongs to the fields that its indentation implies', () => {
  expect(wayTo([...lines.slice(0, 11), '      '], 11)).toEqual(['tasks', '-', 'retry']);
  expect(wayTo([...lines.slice(0, 11), '    '], 11)).toEqual(['tasks', '-']);
  expect(wayTo([...lines.slice(0, 11), ''], 11)).toEqual([]);
});

test('wordsOf returns the words of every schema that fits', () => {
  const root: Schema = {
    properties: {
      triggers: { items: { properties: { catchup: { enum: ['none', 'last', null] } } } },
      env: { anyOf: [{ items: {} }, { additionalProperties: { type: ['boolean', 'null'] } }] },
    },
  };
  expect(wordsOf(schemasAt(root, ['triggers', '-', 'catchup']))).toEqual(['none', 'last']);
  expect(wordsOf(schemasAt(root, ['env', 'ANY']))).toEqual(['true', 'false']);
  expect(schemasAt(root, ['nothing', 'here'])).toEqual([]);
});

test('definitions that refer to themselves are followed as far as a document is deep', () => {
  const steps: Schema = { items: { oneOf: [{ $ref: '#/$defs/sequence' }, { $ref: '#/$defs/task' }] } };
  const root: Schema = {
    properties: { steps: { $ref: '#/$defs/steps' } },
    $defs: {
      steps,
      sequence: { properties: { sequence: { $ref: '#/$defs/steps' } } },
      task: { properties: { priority: { enum: ['high', 'low'] } } },
    },
  };
  expect(wordsOf(schemasAt(root, ['steps', '-', 'sequence', '-', 'priority']))).toEqual(['high', 'low']);
  const fields = schemasAt(root, ['steps', '-']).flatMap(({ properties = {} }) => Object.keys(properties));
  expect(fields).toEqual(['sequence', 'priority']);
});
