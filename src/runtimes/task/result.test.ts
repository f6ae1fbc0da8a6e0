import { expect, it } from 'vitest';
import { maxResultBytes } from '../../contract/wire.ts';
import { resultFault } from './result.ts';

const nested = (levels: number, inner = ''): string => '['.repeat(levels) + inner + ']'.repeat(levels);

it.each([
  ['a value without levels', '"text"'],
  ['100 levels', nested(100)],
  ['objects and lists up to 100 levels', `${'{"a":['.repeat(50)}1${']}'.repeat(50)}`],
  ['many lists side by side', `[${'[],'.repeat(1_000)}[]]`],
  ['brackets in a string', JSON.stringify('['.repeat(200))],
  ['brackets behind an escaped quote', JSON.stringify(`"${'['.repeat(200)}\\`)],
])('a result with %s is stored', (_, text) => expect(resultFault(text)).toBeUndefined());

it.each([
  ['101 levels', nested(101), 'is nested more than 100 deep'],
  ['101 levels behind a string', nested(100, `"]\\"]",{}`), 'is nested more than 100 deep'],
  ['too many bytes', JSON.stringify('x'.repeat(maxResultBytes)), `has ${maxResultBytes + 2} bytes of JSON; at most`],
  ['text', 'done', 'is not JSON: '],
])('a result with %s is rejected', (_, text, fault) => expect(resultFault(text)).toContain(fault));
