import { describe, expect, it } from 'vitest';
import { makeTask } from '../../../test/conformance/task.ts';
import type { RunFacts } from '../contract.ts';
import { expandBlock } from '../kinds.ts';
import { Expansion, longestExpansion } from './templates.ts';

const facts = {
  ...makeTask({ kind: 'none' }).facts,
  params: { x: 'y', n: 5, flag: false, nothing: null, deep: { list: [1, 2], 'a.b': 1 }, 'dotted.name': 'd' },
};

const expand = (text: string, given: RunFacts): string => new Expansion(given).text(text);

describe('placeholders in texts', () => {
  it.each([
    ['{{instant}}', '2026-01-02T03:04:05.000Z'],
    ['{{  instant }}/{{instant.date}}/{{instant.unix}}', '2026-01-02T03:04:05.000Z/2026-01-02/1767323045'],
    ['{{project}}/{{job}}/{{task}} of {{tenant}}', 'project/job/task of default'],
    ['{{run}} {{attempt}} {{idempotency_key}}', `${facts.run} 1 ${facts.run}`],
    ['{{job.id}}', facts.job.id],
    ['--x={{params.x}} --n={{params.n}}{{params.flag}}{{params.nothing}}', '--x=y --n=5false'],
    ['{{params.deep.list}} {{params.dotted.name}}', '[1,2] d'],
    ['{"a":{"b":{{params.n}}}}', '{"a":{"b":5}}'],
    ['{{{{.Id}} {{ and } { {x} }', '{{.Id}} {{ and } { {x} }'],
    ['{{{params.x}}}', '{y}'],
    ['no braces, no cost', 'no braces, no cost'],
  ])('the text %s becomes %s', (text, expected) => expect(expand(text, facts)).toBe(expected));

  it.each([
    ['{{nothing}}', /\{\{nothing\}\} does not exist; valid names are instant, /],
    ['{{}}', /\{\{\}\} does not exist/],
    ['{{.Id}}', /\{\{\.Id\}\}.*\{\{\{\{/],
    ['{{constructor}}', /\{\{constructor\}\} does not exist/],
    ['{{params.z}}', /\{\{params\.z\}\} has no value: the run was given only x, n, flag/],
    ['{{params.x.length}}', /\{\{params\.x\.length\}\}/],
    ['{{params.__proto__}}', /\{\{params\.__proto__\}\}/],
    ['{{params.deep.toString}}', /\{\{params\.deep\.toString\}\}/],
  ])('the placeholder in %s is rejected by name', (text, expected) =>
    expect(() => expand(text, facts)).toThrow(expected),
  );

  it('the error says if the run has no parameters at all', () => {
    expect(() => expand('{{params.x}}', { ...facts, params: {} })).toThrow('no parameters');
  });

  it('placeholders in an expanded value are not expanded', () => {
    expect(expand('{{params.x}}', { ...facts, params: { x: '{{run}}' } })).toBe('{{run}}');
  });
});

it('a value that is one placeholder keeps its type; others become text; keys stay', () => {
  const input = {
    a: '{{params.n}}',
    b: ['{{ params.deep }}', 'n={{params.n}}'],
    '{{run}}': null,
    c: 1,
    d: { e: '{{params.flag}}' },
  };
  expect(new Expansion(facts).value(input)).toEqual({
    a: 5,
    b: [{ list: [1, 2], 'a.b': 1 }, 'n=5'],
    '{{run}}': null,
    c: 1,
    d: { e: false },
  });
});

it('only the members of a block that describe the work are expanded', () => {
  const process = { kind: 'process' as const, command: ['{{job}}', '{{params.n}}'], env: {}, cwd: '/{{task}}' };
  expect(expandBlock(process, new Expansion(facts))).toEqual({ kind: 'process', command: ['job', '5'], cwd: '/task' });
  const docker = { kind: 'docker' as const, image: 'i', args: ['{{task}}'], env: {} };
  expect(expandBlock(docker, new Expansion(facts))).toEqual({
    kind: 'docker',
    image: 'i',
    args: ['task'],
    pull: 'missing',
    volumes: [],
  });
  const call = { kind: 'function' as const, name: '{{job}}', input: '{{params.n}}' };
  expect(expandBlock(call, new Expansion(facts))).toEqual({ kind: 'function', name: '{{job}}', input: 5 });
});

describe('limits of the placeholders of one run', () => {
  const large = { ...facts, params: { x: 'x'.repeat(longestExpansion / 4) } };

  it('placeholders may add a limited number of characters, in all texts of a run together', () => {
    const expansion = new Expansion(large);
    for (let i = 0; i < 4; i++) expect(expansion.text('{{params.x}}')).toHaveLength(longestExpansion / 4);
    expect(() => expansion.text('{{attempt}}')).toThrow(/expand to more than 1048576 characters; \{\{attempt\}\}/);
  });

  it('a placeholder is looked up once, however often it occurs, even without a value', () => {
    const counts = { written: 0, listed: 0 };
    const given: Record<string, unknown> = { p: { toJSON: () => ++counts.written } };
    const params = new Proxy(given, {
      ownKeys: (target) => {
        counts.listed++;
        return Reflect.ownKeys(target);
      },
    });
    const expansion = new Expansion({ ...facts, params });
    for (let i = 0; i < 3; i++) {
      expect(expansion.text('{{params.p}}{{params.p}}')).toBe('11');
      expect(() => expansion.text(`{{params.q${i}}}`)).toThrow('was given only p');
    }
    expect(counts).toEqual({ written: 1, listed: 1 });
  });

  it('the limit includes the input of a function', () => {
    const input = Array.from({ length: 100_000 }, () => '{{params.x}}');
    expect(() => new Expansion(large).value(input)).toThrow(/expand to more than/);
  });
});
