import { describe, expect, it } from 'vitest';
import type { Paint } from './paint.ts';
import { renderTable } from './table.ts';
import { displayWidth, oneLine, truncate } from './width.ts';

const plain: Paint = (_, text) => text;
const marked: Paint = (style, text) => `<${style}>${text}</>`;

describe('tables', () => {
  const columns = [{ title: 'ID' }, { title: 'N', align: 'right' as const }, { title: 'TEXT', flexible: true }];

  it('columns are aligned, without spaces at the end of a line', () => {
    const rows = [
      ['a', 5, 'x'],
      ['long', 123, null],
    ];
    expect(renderTable(columns, rows, { width: undefined, paint: plain })).toEqual([
      'ID      N  TEXT',
      'a       5  x',
      'long  123  -',
    ]);
  });

  it('only flexible columns are cut to the width of the terminal', () => {
    const rows = [['0123456789', 1, 'a rather long description']];
    const lines = renderTable(columns, rows, { width: 30, paint: plain });
    expect(lines[1]).toBe('0123456789  1  a rather long …');
    expect(renderTable(columns, rows, { width: 12, paint: plain })[1]).toBe('0123456789  1  a rat…');
  });

  it('nothing is cut without a terminal', () => {
    const rows = [['a', 1, 'y'.repeat(500)]];
    expect(renderTable(columns, rows, { width: undefined, paint: plain })[1]).toContain('y'.repeat(500));
  });

  it('wide characters are aligned by their display width', () => {
    const lines = renderTable(
      [{ title: 'NAME' }, { title: 'X' }],
      [
        ['日本', 'a'],
        ['abcd', 'b'],
        ['👩‍👩‍👧ab', 'c'],
      ],
      { width: undefined, paint: plain },
    );
    expect(lines).toEqual(['NAME  X', '日本  a', 'abcd  b', '👩‍👩‍👧ab  c']);
  });

  it('a cell is coloured with its padding, so that columns stay aligned', () => {
    const [, row] = renderTable([{ title: 'STATE' }, { title: 'B' }], [[{ text: 'ok', style: 'green' }, 'b']], {
      width: undefined,
      paint: marked,
    });
    expect(row).toBe('<green>ok   </>  b');
  });

  it('control characters are escaped', () => {
    const [, row] = renderTable([{ title: 'T' }], [['a\u001b[2Jb\nc\u202e']], { width: undefined, paint: plain });
    expect(row).toBe('a\\u001b[2Jb\\nc\\u202e');
  });
});

describe('width of a text', () => {
  it.each([
    ['abc', 3],
    ['日本', 4],
    ['é', 1],
    ['e\u0301', 1],
    ['👍', 2],
    ['👩‍👩‍👧', 2],
    ['한국', 4],
    ['', 0],
  ])('the width of %s is %i', (text, width) => expect(displayWidth(text)).toBe(width));

  it('a truncated text is never wider than requested', () => {
    for (let width = 0; width < 12; width++)
      expect(displayWidth(truncate('日本 is 日本語', width))).toBeLessThanOrEqual(width);
    expect(truncate('abc', 3)).toBe('abc');
  });

  it('oneLine does not change ordinary text', () => expect(oneLine('naïve – 日本 👍')).toBe('naïve – 日本 👍'));
});
