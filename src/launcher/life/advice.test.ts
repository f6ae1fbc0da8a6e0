import { describe, expect, it } from 'vitest';
import { adoptCommand, isGivable } from './advice.ts';

describe('the command that adopts a database', () => {
  it.each([
    ['shop', 'shop', 'millrace tenant adopt shop'],
    ['shop', 'shop_prod', 'millrace tenant adopt shop --database shop_prod'],
    ['My DB/x', 'My DB/x', "millrace tenant adopt my-db-x --database 'My DB/x'"],
    ["_it's_", "_it's_", String.raw`millrace tenant adopt it-s --database '_it'\''s_'`],
    ['日本', '日本', "millrace tenant adopt tenant --database '日本'"],
    [`a${'.'.repeat(70)}b`, 'x', 'millrace tenant adopt a-b --database x'],
    [`${'a'.repeat(62)}-b`, 'x', `millrace tenant adopt ${'a'.repeat(62)} --database x`],
  ])('of tenant %j in the database %j can be copied', (name, database, command) => {
    expect(adoptCommand(name, database)).toBe(command);
  });
});

it.each([
  ['shop', true],
  ['a', true],
  ['a_b-1', true],
  ['a'.repeat(63), true],
  ['a'.repeat(64), false],
  ['', false],
  ['Shop', false],
  ['-a', false],
  ['a_', false],
  ['a b', false],
])('%j can be a name: %s', (name, can) => expect(isGivable(name)).toBe(can));
