import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadFunctions } from './file.ts';

let folder = '';
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'millrace-functions-'));
});
afterAll(async () => await rm(folder, { recursive: true }));

async function load(name: string, source: string): Promise<string[]> {
  await writeFile(join(folder, name), source);
  return Object.keys(await loadFunctions(join(folder, name))).sort();
}

describe('loadFunctions', () => {
  it('the functions of a file are its named exports and the members of its default export', async () => {
    const source =
      'export const a = () => 1; export async function b() {} export const n = 5; export default { c() {}, a };';
    expect(await load('good.mjs', source)).toEqual(['a', 'b', 'c']);
  });

  it.each([
    ['empty.mjs', 'export const n = 1', /it exports no function/],
    ['broken.mjs', 'export const = 1', /broken\.mjs cannot be used: /],
    ['throws.mjs', 'throw new Error("at once")', /at once/],
    ['member.mjs', 'export default { a: 1 }', /"a" of its default export is not a function/],
    ['nameless.mjs', 'export default () => 1', /default export is a function without a name/],
    ['generator.mjs', 'export async function* steps() { yield 1; }', /"steps" is a generator/],
    ['twice.mjs', 'export const a = () => 1; export default { a: () => 2 }', /exports "a" twice/],
  ])('the file %s is rejected with the reason', async (name, source, reason) => {
    await expect(load(name, source)).rejects.toThrow(reason);
  });

  it('a file that does not exist is rejected by name', async () => {
    await expect(loadFunctions(join(folder, 'absent.mjs'))).rejects.toThrow(/absent\.mjs/);
  });
});
