import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeEach, expect, it } from 'vitest';
import { isId } from '../kernel/id.ts';
import { type Log, silent } from '../kernel/log.ts';
import { nextIdentity } from './worker-identity.ts';

const root = mkdtempSync(join(tmpdir(), 'worker-identity-'));
let home: string;
let warnings: string[];
const log = { ...silent, warn: (_: object, text: string) => void warnings.push(text) } as unknown as Log;

beforeEach(() => {
  home = mkdtempSync(join(root, 'home-'));
  warnings = [];
});
afterAll(() => rmSync(root, { recursive: true }));

const written = (file: string): string => readFileSync(join(home, file), 'utf8').trim();

it('the worker of a home keeps its id, and each start has a later incarnation', async () => {
  const first = await nextIdentity(home, log);
  const second = await nextIdentity(home, log);
  expect(second.id).toBe(first.id);
  expect(second.incarnation).toBeGreaterThan(first.incarnation);
  expect([written('worker-id'), written('worker-incarnation')]).toEqual([second.id, String(second.incarnation)]);
  expect(warnings).toEqual([]);
});

it.each(['', 'garbage', '\0\0\0\0', 'ffffffff'])(
  'a worker-id file that holds %j is replaced, with a warning',
  async (text) => {
    writeFileSync(join(home, 'worker-id'), text);
    const { id } = await nextIdentity(home, log);
    expect(isId(id)).toBe(true);
    expect(written('worker-id')).toBe(id);
    expect(warnings).toEqual(['worker file damaged, replacing it']);
  },
);

it.each(['', 'NaN', '-5', '1e400', String(2 ** 53 - 1), '99999999999999999999'])(
  'a worker-incarnation file that holds %j is replaced by the time, with a warning',
  async (text) => {
    writeFileSync(join(home, 'worker-incarnation'), text);
    const before = Date.now();
    const { incarnation } = await nextIdentity(home, log);
    expect(incarnation).toBeGreaterThanOrEqual(before);
    expect(incarnation).toBeLessThanOrEqual(Date.now());
    expect(written('worker-incarnation')).toBe(String(incarnation));
    expect(warnings).toHaveLength(1);
  },
);

it('a worker works even if its files can be neither read nor written', async () => {
  mkdirSync(join(home, 'worker-id'));
  expect(isId((await nextIdentity(home, log)).id)).toBe(true);
  expect(warnings).toHaveLength(2);
});
