import { expect, test } from 'vitest';
import { append, type LogText, noText } from './log-text.ts';

const escape = '\u001B';

function feed(...chunks: readonly string[]): LogText {
  return chunks.reduce((log, chunk) => append(log, chunk), noText);
}

function textOf(log: LogText): string {
  return log.blocks.map((block) => block.text).join('');
}

test('terminal codes are taken out, also where a chunk ends within one', () => {
  expect(textOf(feed(`${escape}[1;32mgreen${escape}[0m\n`))).toBe('green\n');
  expect(textOf(feed(`a${escape}`, '[3', `2mb${escape}]8;;http://x`, `${escape}\\link`))).toBe('ablink');
  expect(textOf(feed('no [32m code\n'))).toBe('no [32m code\n');
});

test('nothing is lost or doubled while text is cut into blocks', () => {
  const lines = Array.from({ length: 5_000 }, (_, n) => `line ${n} of a log\n`);
  const log = feed(...lines);
  expect(textOf(log)).toBe(lines.join(''));
  expect(log.blocks.length).toBeGreaterThan(3);
  expect(log.blocks.map((block) => block.number)).toEqual(log.blocks.map((_, n) => n));
  expect(textOf(feed(lines.join('')))).toBe(lines.join(''));
});

test('a full block is never touched again', () => {
  const before = feed('x'.repeat(20_000));
  const after = append(before, 'more\n');
  expect(after.blocks[0]).toBe(before.blocks[0]);
});

test('a log without end keeps its newest part and says so', () => {
  let log = noText;
  for (let n = 0; n < 200; n++) log = append(log, `${'y'.repeat(16_383)}\n`);
  expect(log.blocks).toHaveLength(64);
  expect(log.isCut).toBe(true);
  expect(log.blocks.at(-1)?.number).toBe(199);
});
