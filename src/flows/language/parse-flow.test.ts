import { readdirSync, readFileSync } from 'node:fs';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseFlow, parseFlowText } from './parse-flow.ts';
import { flowJsonSchema } from './json-schema.ts';

/** The faults of a flow with these steps, a line each. */
function faultsOf(steps: unknown, more: Record<string, unknown> = {}): string[] {
  const parsed = parseFlow({ flow: 'f', steps, ...more });
  return parsed.ok ? [] : parsed.faults.map(({ path, message }) => `${path}: ${message}`);
}

function warningsOf(steps: unknown): string[] {
  const parsed = parseFlow({ flow: 'f', steps });
  return parsed.ok ? parsed.warnings.map(({ path, message }) => `${path}: ${message}`) : ['not valid'];
}

describe('the examples', () => {
  it.each(readdirSync('examples/flows').filter((name) => name.endsWith('.yaml')))(
    '%s is valid, without warnings',
    (name) => {
      const parsed = parseFlowText(readFileSync(`examples/flows/${name}`, 'utf8'), 'yaml');
      expect(parsed).toMatchObject({ ok: true });
      expect(parsed.ok && parsed.warnings.filter(({ message }) => !message.includes('without a timeout'))).toEqual([]);
    },
  );
});

describe('faults', () => {
  it.each<[unknown, string[]]>([
    ['x', ['steps: must be a list, not text']],
    [['x'], ['steps[0]: must be a step: a mapping with a verb, such as {task: name}']],
    [[{ tsk: 'a' }], ['steps[0]: has no verb; did you mean task?']],
    [[{ concurrence: [] }], ['steps[0]: has no verb; concurrence is called parallel here']],
    [[{ task: 'a', wait: '1s' }], ['steps[0]: has two verbs, task and wait: make two steps of it']],
    [
      [{ true: { signal: 'a' }, do: [] }],
      ['steps[0]: has the field true: in YAML 1.1 that is `on`; declare YAML 1.2 or quote it'],
    ],
    [[{ task: 'a', wiht: 1 }], ['steps[0].wiht: is not a field of a task step; did you mean with?']],
    [[{ task: 'a', retry: { max_attempts: 0 } }], ['steps[0].retry.max_attempts: must be at least 1']],
    [
      [{ task: 'a', timeout: 'soon' }],
      ['steps[0].timeout: has "soon" where a number is expected; write it like 1h 30m'],
    ],
    [[{ if: 'f.a ==', then: [] }], ['steps[0].if: is not an expression: unexpected token: the end']],
    [[{ if: 'g.a', then: [] }], ['steps[0].if: names the unknown variable g, near "g.a"']],
    [
      [{ set: { 'f.a': '$(it.x)' } }],
      ['steps[0].set["f.a"]: names the unknown variable it, near "it.x"; write $$( for a literal $('],
    ],
    [[{ set: { 'g.a': 1 } }], ['steps[0].set["g.a"]: must be a path such as f.order, v.count or ret']],
    [['break'], ['steps[0].break: must be inside a loop or an each']],
    [[{ loop: [{ break: 'x' }], tag: 'y' }], ['steps[0].loop[0].break: names no loop or each around it: x']],
    [[{ parallel: [{ task: 'a' }], expect: 2 }], ['steps[0].expect: must be at most the number of branches, 1']],
    [[{ wait: {} }], ['steps[0].wait: needs for, until or on']],
    [
      [{ wait: { on: { signal: 'a', every: '1s' } } }],
      ['steps[0].wait.on: needs exactly one of signal, entered, left, every, cron'],
    ],
    [[{ on: { every: '1s', timezone: 'UTC' }, do: [] }], ['steps[0].on.timezone: does not go with every']],
    [
      [{ task: 'a', process: { command: ['a'] }, human: { title: 't', team: 'x' } }],
      ['steps[0]: has process and human: a task has at most one of them'],
    ],
    [[{ task: 'a', human: { title: 't' } }], ['steps[0].human: needs an assignee or a team']],
    [
      [{ task: 'a', process: { command: ['sh', '-c', 'echo $(date)'] } }],
      ['steps[0].process: names the unknown variable date, near "date"; write $$( for a literal $('],
    ],
    [[{ switch: 'f.a', cases: {} }], ['steps[0].cases: must not be empty']],
    [
      [{ task: 'a', on_error: [{ match: 'x' }] }],
      [
        'steps[0].on_error[0]: has no verb; it needs one of sequence, parallel, if, switch, loop, each, task, call, wait, on, signal, set, fail, cancel, break, continue',
      ],
    ],
    [
      [{ task: 'a', on_error: [{ do: [{ tsk: 'b' }] }] }],
      ['steps[0].on_error[0].do[0]: has no verb; did you mean task?'],
    ],
    [
      [{ tsk: 'a' }, { if: 'x.y', then: [{ task: 'a', nope: 1 }] }],
      [
        'steps[0]: has no verb; did you mean task?',
        'steps[1].if: names the unknown variable x, near "x.y"',
        'steps[1].then[0].nope: is not a field of a task step',
      ],
    ],
  ])('%j', (steps, faults) => {
    expect(faultsOf(steps)).toEqual(faults);
  });

  it('The top of a document has faults of its own.', () => {
    expect(parseFlow({})).toMatchObject({ ok: false });
    expect(faultsOf([], { stepz: [] })).toEqual(['stepz: is not a field of a flow; did you mean steps?']);
    expect(faultsOf([], { timeout: 'x' })).toEqual([
      'timeout: has "x" where a number is expected; write it like 1h 30m',
    ]);
    expect(faultsOf([], { defaults: { timeout: 'x' } })).toEqual([
      'defaults.timeout: has "x" where a number is expected; write it like 1h 30m',
    ]);
    expect(faultsOf([], { labels: { a: '$(nope)' } })).toEqual([
      'labels.a: names the unknown variable nope, near "nope"; write $$( for a literal $(',
    ]);
  });

  it('Labels, which are stored in clear, cannot read sealed fields.', () => {
    const labels = {
      a: '$(f.card)',
      b: '$(input.card.last)',
      c: '$(string(input))',
      d: '$(input.customer)',
      e: 'fixed',
    };
    const parsed = parseFlow({ flow: 'x', sealed: ['f.card'], labels, steps: [{ wait: '1h' }] });
    expect(parsed).toMatchObject({ ok: false });
    if (!parsed.ok) expect(parsed.faults.map(({ path }) => path)).toEqual(['labels.a', 'labels.b', 'labels.c']);
    expect(parseFlow({ flow: 'x', labels, steps: [{ wait: '1h' }] }).ok).toBe(true);
  });

  it('At most a hundred faults are listed.', () => {
    const faults = faultsOf(Array.from({ length: 200 }, () => ({ nope: 1 })));
    expect(faults).toHaveLength(101);
    expect(faults.at(-1)).toBe(': has more than 100 faults; the others are not listed');
  });

  it('Documents that are too deep or too large are rejected.', () => {
    let deep: unknown = { task: 'a' };
    for (let i = 0; i < 40; i++) deep = { sequence: [deep] };
    expect(faultsOf([deep])[0]).toContain('is nested deeper than 64 levels');
    const many = Array.from({ length: 5_001 }, () => ({ wait: '1s' }));
    expect(faultsOf(many)).toEqual(['steps: has more than 5000 steps']);
  });

  it('has at most 50 labels', () => {
    const labels = Object.fromEntries(Array.from({ length: 51 }, (_, i) => [`l${i}`, '$(input)']));
    const parsed = parseFlow({ flow: 'f', labels, steps: [{ task: 'a' }] });
    expect(parsed).toMatchObject({ ok: false, faults: [{ path: 'labels', message: 'has more than 50 labels' }] });
  });

  it('has at most 256 KiB of expressions, and as many other texts as fit', () => {
    const withTexts = (text: string) => Array.from({ length: 300 }, () => ({ task: 'a', with: text }));
    expect(faultsOf(withTexts('f.n,'.repeat(800)))).toEqual([]);
    // each has 1,004 characters
    expect(faultsOf(withTexts(`$([${'f.n,'.repeat(249)}f.n])`))).toEqual([
      'steps[261].with: with the expressions before it, has more than 262144 characters of expressions',
    ]);
  });

  it('No document makes the parser throw.', () => {
    const value = fc.jsonValue({ maxDepth: 4 });
    const key = fc.constantFrom(
      'task',
      'if',
      'then',
      'on',
      'do',
      'wait',
      'each',
      'cases',
      'switch',
      'retry',
      'on_error',
      'undo',
      'with',
    );
    const step = fc.dictionary(key, fc.oneof(value, fc.array(fc.dictionary(key, value), { maxLength: 2 })), {
      maxKeys: 4,
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 4 }), (steps) => {
        parseFlow(JSON.parse(JSON.stringify({ flow: 'f', steps })));
      }),
      { numRuns: 500, seed: 7 },
    );
  });
});

describe('warnings', () => {
  it.each<[unknown, string[]]>([
    [
      [{ loop: [{ task: 'a' }] }],
      ['steps[0]: has no end: give it while, until, max or a break; it fails after 10000 rounds'],
    ],
    [[{ loop: [{ if: 'f.a', then: ['break'] }] }], []],
    [
      [{ cancel: 'mian' }, { task: 'a', tag: 'main' }],
      ['steps[0]: names the tag mian, which no step has; did you mean main?'],
    ],
    [[{ fail: 'x' }, { task: 'a' }], ['steps: never reaches steps[1], because steps[0] ends it']],
    [[{ task: 'a', on_timeout: [] }], ['steps[0]: has on_timeout, but no timeout']],
    [
      [
        { sequence: [{ task: 'a', human: { team: 't', title: 'x' } }], timeout: '1d' },
        { task: 'b', human: { team: 't', title: 'x' }, timeout: '1d' },
      ],
      [],
    ],
    [
      [{ sequence: [{ wait: '1d' }], timeout: '1d', on_timeout: [{ task: 'a', human: { team: 't', title: 'x' } }] }],
      ['steps[0].on_timeout[0]: waits for a person without a timeout, its own or one around it: it may wait for ever'],
    ],
  ])('%j', (steps, warnings) => {
    expect(warningsOf(steps)).toEqual(warnings);
  });
});

it('The JSON Schema refers to itself for nested steps.', () => {
  const schema = JSON.stringify(flowJsonSchema());
  expect(schema).toContain('"$ref":"#/$defs/steps"');
  expect(schema).not.toContain('x-steps');
});
