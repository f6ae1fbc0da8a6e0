import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { armCheckpoint, checkpoints } from './checkpoints.ts';

const src = fileURLToPath(new URL('..', import.meta.url));
const declared: readonly string[] = Object.values(checkpoints).flat();

function findAll(pattern: RegExp): string[] {
  return readdirSync(src, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'))
    .flatMap((name) => [...readFileSync(join(src, name), 'utf8').matchAll(pattern)])
    .map(([, name = '']) => name);
}

it('every declared checkpoint is passed somewhere, each in one place, and no other is', () => {
  const passed = findAll(/\bcheckpoint\('([^']+)'\)/g);
  expect(passed.toSorted()).toEqual(declared.toSorted());
});

it('every room that declares checkpoints is in the table', () => {
  const tables = findAll(/\bnames: (\w+), checkpoint \} = declareCheckpoints/g);
  const collected = readFileSync(join(src, 'app/checkpoints.ts'), 'utf8');
  expect(tables.length).toBe(findAll(/= (declareCheckpoints)\(/g).length);
  expect(tables.filter((name) => !collected.includes(name))).toEqual([]);
});

it('a checkpoint that no room declares cannot be armed', () => {
  expect(() => armCheckpoint({ name: 'no.where', passage: 1 })).toThrow('there is no checkpoint no.where');
});
