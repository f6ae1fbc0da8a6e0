import { expect, test } from 'vitest';
import { piecesOf, plain, plainText, styleAfter } from './ansi.ts';

const escape = '\u001B';
const look = (line: string) => piecesOf(line).map(({ text, style }) => [text, style]);

test('colours of all three kinds, weights, and their ends', () => {
  expect(look(`a${escape}[1;31mb${escape}[22mc${escape}[39md`)).toEqual([
    ['a', {}],
    ['b', { bold: true, ink: 1 }],
    ['c', { ink: 1 }],
    ['d', {}],
  ]);
  expect(look(`${escape}[38;5;208ma${escape}[48;2;1;2;300;4mb${escape}[mc${escape}[96;2md`)).toEqual([
    ['a', { ink: 'rgb(255 135 0)' }],
    ['b', { ink: 'rgb(255 135 0)', ground: 'rgb(1 2 255)', underline: true }],
    ['c', {}],
    ['d', { ink: 14, dim: true }],
  ]);
  expect(look(`${escape}[38;5;9ma${escape}[38:2:1:2:3mb`)).toEqual([
    ['a', { ink: 9 }],
    ['b', { ink: 'rgb(1 2 3)' }],
  ]);
});

test('all other codes are taken out, cut-off ones too', () => {
  const line = `a${escape}[2Kb${escape}[10;3Hc${escape}]8;;http://x${escape}\\link${escape}]0;title\u0007d\u0008${escape}(B`;
  expect(plainText(`${line}${escape}[3`)).toBe('abclinkd');
  expect(plainText('no [32m code')).toBe('no [32m code');
});

test('a line drawn over itself shows as it stood at last, in the colour that began before', () => {
  expect(look(`${escape}[32m10%\r50%\r100%${escape}[0m`)).toEqual([['100%', { ink: 2 }]]);
  expect(plainText('kept\r')).toBe('kept');
});

test('a style goes on until it is reset', () => {
  expect(styleAfter(`${escape}[1mx`, plain)).toEqual({ bold: true });
  expect(styleAfter(`${escape}[31mx${escape}[0m${escape}[4m`, { bold: true })).toEqual({ underline: true });
  expect(styleAfter('nothing', { bold: true })).toEqual({ bold: true });
});

test('the time for a code does not grow faster than its length', () => {
  // what a task prints is read by every viewer's browser: a block of these took seconds
  const codes = `${escape}[${'38;'.repeat(300_000)}m`;
  const before = process.cpuUsage();
  expect(styleAfter(codes, plain)).toEqual({});
  expect(process.cpuUsage(before).user / 1_000).toBeLessThan(3_000);
});
