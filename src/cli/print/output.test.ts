import { PassThrough } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { type Change, renderChanges } from './diff.ts';
import { makePaint } from './paint.ts';

const sink = (isTTY: boolean) => Object.assign(new PassThrough(), { isTTY });

describe('colours', () => {
  it('colours are used on a terminal', () => {
    expect(makePaint(sink(true), {})('red', 'x')).toBe('\u001b[31mx\u001b[0m');
  });

  it.each([
    ['a pipe', sink(false), {}],
    ['NO_COLOR', sink(true), { NO_COLOR: '1' }],
    ['a dumb terminal', sink(true), { TERM: 'dumb' }],
  ])('colours are not used with %s', (_, to, env) => expect(makePaint(to, env)('red', 'x')).toBe('x'));

  it('colours are used if NO_COLOR is empty', () => {
    expect(makePaint(sink(true), { NO_COLOR: '' })('red', 'x')).not.toBe('x');
  });
});

describe('diffs', () => {
  const paint = makePaint(sink(false), {});
  const line = (change: Change): string | undefined => renderChanges([change], paint)[0];

  it('a diff shows both values', () => {
    expect(line({ path: 'tasks[0].timeout', change: 'changed', before: '1h', after: '2h' })).toBe(
      '    ~ tasks[0].timeout: "1h" → "2h"',
    );
  });

  it('a diff shows added and removed values', () => {
    expect(line({ path: 'tasks.x', change: 'added', after: { name: 'x' } })).toBe('    + tasks.x: {"name":"x"}');
    expect(line({ path: 'paused', change: 'removed', before: true })).toBe('    - paused: true');
    expect(line({ path: '', change: 'added', after: 1 })).toBe('    + (the whole document): 1');
  });

  it('a diff cuts long values, and escapes control characters', () => {
    expect(line({ path: 'a', change: 'added', after: 'x'.repeat(1000) })?.length).toBeLessThan(320);
    expect(line({ path: 'a', change: 'changed', before: undefined, after: '\u009b2J' })).toBe(
      '    ~ a: nothing → "\\u009b2J"',
    );
  });
});
