import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { findSecretVariable, readSecretVariable } from './secret-variable.ts';

const folder = mkdtempSync(join(tmpdir(), 'millrace-secret-'));
const file = (name: string, text: string, mode = 0o644): string => {
  const path = join(folder, name);
  writeFileSync(path, text);
  chmodSync(path, mode);
  return path;
};

afterAll(() => rmSync(folder, { recursive: true }));

it('the value comes from the variable, or from the file that the other variable names', () => {
  expect(readSecretVariable({}, 'KEY')).toBeUndefined();
  expect(readSecretVariable({ KEY: 'mrk_1', KEY_FILE: '' }, 'KEY')).toBe('mrk_1');
  expect(readSecretVariable({ KEY_FILE: file('mounted', 'mrk_2\n', 0o444) }, 'KEY')).toBe('mrk_2');
});

it.each([
  ['a file that every user may write', { KEY_FILE: file('open', 'mrk_3', 0o666) }, 'chmod o-w'],
  ['an empty file', { KEY_FILE: file('empty', ' \n') }, 'is empty'],
  ['a missing file', { KEY_FILE: join(folder, 'missing') }, 'ENOENT'],
  ['a folder', { KEY_FILE: folder }, 'EISDIR'],
  ['a value beside the file', { KEY: 'mrk_4', KEY_FILE: file('beside', 'mrk_5') }, 'KEY is set as well'],
])('%s is rejected with an error that names the variable', (_, env, message) => {
  expect(findSecretVariable(env, 'KEY').fault).toEqual({
    path: 'KEY_FILE',
    message: expect.stringContaining(message) as unknown,
  });
  expect(() => readSecretVariable(env, 'KEY')).toThrow(/^KEY_FILE: /);
});
