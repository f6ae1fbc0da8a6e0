import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { MillraceError } from '../errors.ts';
import { rootKeyOf, secretKeyOf } from './secret-files.ts';

const folder = mkdtempSync(join(tmpdir(), 'secret-files-'));
afterAll(() => rmSync(folder, { recursive: true }));

function newHome(): string {
  return mkdtempSync(join(folder, 'home-'));
}

async function rejection(work: Promise<unknown>): Promise<string> {
  const error: unknown = await work.then(
    () => 'done',
    (e: unknown) => e,
  );
  if (!(error instanceof MillraceError)) throw new Error('it was not rejected', { cause: error });
  expect(error.code).toBe('bad_configuration');
  return error.message;
}

const files = [
  ['root-key', rootKeyOf],
  ['secret-key', secretKeyOf],
] as const;

describe.each(files)('file %s', (name, read) => {
  it('the file is created once, and then read', async () => {
    const home = newHome();
    const made = await read(home);
    expect(made.length).toBeGreaterThan(16);
    expect(await read(home)).toBe(made);
    expect(readFileSync(join(home, name), 'utf8').trim()).toBe(made);
    expect(readdirSync(home)).toEqual([name]);
  });

  it('concurrent starts create the same file', async () => {
    const home = newHome();
    const keys = await Promise.all(Array.from({ length: 20 }, () => read(home)));
    expect(new Set(keys).size).toBe(1);
  });

  it.each([
    ['empty', ''],
    ['empty', '\n'],
    ['too short', 'hunter2\n'],
    ['too short', '15 characters..'.replaceAll(' ', '-')],
    ['malformed', '\0'.repeat(43)],
    ['malformed', 'two-lines-of-text\nwith-a-key-each\n'],
  ])('a file that is %s is rejected and not changed (%j)', async (fault, content) => {
    const home = newHome();
    const path = join(home, name);
    writeFileSync(path, content, { mode: 0o600 });
    const message = await rejection(read(home));
    expect(message).toContain(`${path} is ${fault}`);
    expect(message).toContain(`rm ${path}`);
    if (content.trim() !== '') expect(message).not.toContain(content.trim());
    expect(readFileSync(path, 'utf8')).toBe(content);
  });

  it('a file that other users may read or write is rejected', async () => {
    for (const mode of [0o644, 0o640, 0o620, 0o602, 0o604]) {
      const home = newHome();
      const path = join(home, name);
      writeFileSync(path, 'a-key-of-enough-characters');
      chmodSync(path, mode);
      expect(await rejection(read(home))).toContain(`chmod 600 ${path}`);
    }
  });

  it.skipIf(process.getuid?.() !== 0)('a file of another user is rejected', async () => {
    const home = newHome();
    const path = join(home, name);
    writeFileSync(path, 'a-key-of-enough-characters', { mode: 0o600 });
    chownSync(path, 12_345, 12_345);
    expect(await rejection(read(home))).toContain('belongs to user 12345');
  });

  it('a folder, or a file that cannot be created, is rejected with a message', async () => {
    const home = newHome();
    mkdirSync(join(home, name));
    expect(await rejection(read(home))).toContain(`${join(home, name)} is not a file`);
    expect(await rejection(read('/proc/self'))).toContain('cannot be read or created');
    const linked = newHome();
    symlinkSync('nowhere', join(linked, name));
    expect(await rejection(read(linked))).toContain('is a broken link');
  });
});
