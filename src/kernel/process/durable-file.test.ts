import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { compileInto } from '../../../test/harness/compiled.ts';
import { createDurably, fileCheckpoints, removeDrafts, replaceDurably } from './durable-file.ts';

const folder = mkdtempSync(join(tmpdir(), 'durable-file-'));
const compiled = join(folder, 'compiled');
let files = 0;

function newFolder(): string {
  return mkdtempSync(join(folder, `${files++}-`));
}

beforeAll(() => compileInto(compiled, 'kernel/process/durable-file.ts'));
afterAll(() => rmSync(folder, { recursive: true }));

/** Another process creates the file, and dies at that checkpoint. */
function dieAt(checkpoint: string, path: string, content: string): NodeJS.Signals | null {
  const program = `
    import { arm } from '${compiled}/kernel/checkpoint.js';
    import { createDurably } from '${compiled}/kernel/process/durable-file.js';
    arm({ name: '${checkpoint}', passage: 1 });
    await createDurably(${JSON.stringify(path)}, ${JSON.stringify(content)});`;
  return spawnSync(process.execPath, ['--input-type=module', '-e', program], { stdio: ['ignore', 'ignore', 'inherit'] })
    .signal;
}

describe('durable files', () => {
  it('a created file is private, has its content, and leaves no draft', async () => {
    const path = join(newFolder(), 'key');
    expect(await createDurably(path, 'content\n')).toBe(true);
    expect(readFileSync(path, 'utf8')).toBe('content\n');
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(readdirSync(join(path, '..'))).toEqual(['key']);
  });

  it('an existing file is not changed, even an empty one', async () => {
    const path = join(newFolder(), 'key');
    writeFileSync(path, '');
    expect(await createDurably(path, 'content\n')).toBe(false);
    expect(readFileSync(path, 'utf8')).toBe('');
  });

  it('a file is replaced as a whole, without a draft left', async () => {
    const path = join(newFolder(), 'id');
    for (const content of ['a long content\n', 'short\n']) await replaceDurably(path, content);
    expect(readFileSync(path, 'utf8')).toBe('short\n');
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(readdirSync(join(path, '..'))).toEqual(['id']);
  });

  it('a file is created by exactly one of many concurrent calls', async () => {
    const path = join(newFolder(), 'key');
    const tries = await Promise.all(Array.from({ length: 20 }, (_, n) => createDurably(path, `${n}`)));
    expect(tries.filter(Boolean)).toHaveLength(1);
    expect(readFileSync(path, 'utf8')).toBe(String(tries.indexOf(true)));
  });

  it.each(fileCheckpoints)('a file is complete or absent if its process dies at %s', async (checkpoint) => {
    const path = join(newFolder(), 'key');
    expect(dieAt(checkpoint, path, 'of the dead')).toBe('SIGKILL');
    const isThere = readdirSync(join(path, '..')).includes('key');
    expect(isThere).toBe(checkpoint === 'file.linked' || checkpoint === 'file.kept');
    if (isThere) expect(readFileSync(path, 'utf8')).toBe('of the dead');
    expect(await createDurably(path, 'of the next')).toBe(!isThere);
    expect(readFileSync(path, 'utf8')).toBe(isThere ? 'of the dead' : 'of the next');
    await removeDrafts(path);
    expect(readdirSync(join(path, '..'))).toEqual(['key']);
  });
});
