import { expect, it } from 'vitest';
import { answerFull, type DefinitionKey, type TaskDefinition } from '../../contract/wire.ts';
import { newId } from '../../kernel/id.ts';
import { DefinitionsAnswer } from './definitions-answer.ts';

const keysOf = (tenant: string, count: number): DefinitionKey[] =>
  Array.from({ length: count }, () => ({ tenant, task: newId(), version: 1 }));

function define(key: DefinitionKey, chars: number): TaskDefinition {
  const named = { id: newId(), name: 'x' };
  const more = { name: 'task', job: named, project: named, timeout_ms: 1_000, params: { x: 'x'.repeat(chars) } };
  return { ...key, ...more, runtime: { kind: 'none' } };
}

it('a full answer takes no further definitions, and names the tenants whose definitions are missing', async () => {
  const answer = new DefinitionsAnswer({
    answerBytes: 10_000,
    perPiece: 2,
    growth: 2,
    maxPerPiece: 8,
    smallBytes: 1_000,
  });
  const read = async (some: readonly DefinitionKey[]) => some.map((key) => define(key, 2_400));
  await answer.fill('a', keysOf('a', 10), 1_000, read);
  await answer.fill('b', keysOf('b', 1), 1_000, read);
  expect(answer.definitions.map(({ tenant }) => tenant)).toEqual(['a', 'a', 'a', 'a']);
  expect(answer.failed.map(({ tenant, code }) => [tenant, code])).toEqual([
    ['a', answerFull],
    ['b', answerFull],
  ]);
});

it('all small definitions fit', async () => {
  const answer = new DefinitionsAnswer();
  const pieces: number[] = [];
  await answer.fill('a', keysOf('a', 1_000), 1_000, async (some) => {
    pieces.push(some.length);
    return some.map((key) => define(key, 10));
  });
  expect([answer.definitions.length, answer.failed.length]).toEqual([1_000, 0]);
  expect(pieces).toEqual([32, 512, 456]);
});
