import { execFileSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { shellWord } from './shell-word.ts';

it.each(['plain', 'shop/daily@2030-01-31T00:00:00Z', 'two words', "it's", '$HOME `id` "x" \\', ''])(
  'a shell reads %s back as it was',
  (text) => {
    expect(execFileSync('sh', ['-c', `printf %s ${shellWord(text)}`]).toString()).toBe(text);
  },
);

it('a word that needs no quotes has none', () => {
  expect(shellWord('shop/daily')).toBe('shop/daily');
});
