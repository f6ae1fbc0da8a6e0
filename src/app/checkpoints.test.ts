import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { armCheckpoint, checkpoints } from './checkpoints.ts';

const src = fileURLToPath(new URL('..', import.meta.url));
const declared: readonly string[] = Object.values(checkpoints).flat();

const sources = readdirSync(src, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'))
  .map((name) => ({ name, text: readFileSync(join(src, name), 'utf8') }));

it('every declared checkpoint is passed in exactly one place, and no undeclared one is passed', () => {
  const passed = sources.flatMap(({ text }) =>
    Array.from(text.matchAll(/\bcheckpoint\('([^']+)'\)/g), ([, name = '']) => name),
  );
  expect(passed.toSorted()).toEqual(declared.toSorted());
});

it('every room that declares checkpoints is in the table', () => {
  const collected = readFileSync(join(src, 'app/checkpoints.ts'), 'utf8');
  const declaring = sources.filter(({ text }) => text.includes('= declareCheckpoints('));
  expect(declaring.length).toBeGreaterThan(5);
  expect(declaring.filter(({ name }) => !collected.includes(`'../${name}'`))).toEqual([]);
});

it('a checkpoint that no room declares cannot be armed', () => {
  expect(() => armCheckpoint({ name: 'no.where', passage: 1 })).toThrow('no.where');
});
