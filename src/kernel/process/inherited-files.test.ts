import { spawnSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { compileInto } from '../../../test/harness/compiled.ts';

const folder = mkdtempSync(join(tmpdir(), 'inherited-files-'));
const compiled = join(folder, 'compiled');

beforeAll(() => compileInto(compiled, 'kernel/process/inherited-files.ts'));
afterAll(() => rmSync(folder, { recursive: true }));

/** The descriptors of a program that is started by a process which has inherited 0 to 40. */
function descriptorsOfGrandchild(closes: boolean): number[] {
  const program = `
    import { spawnSync } from 'node:child_process';
    import { closeInheritedFiles } from '${compiled}/kernel/process/inherited-files.js';
    if (${closes}) closeInheritedFiles();
    spawnSync('ls', ['/proc/self/fd'], { stdio: ['ignore', 'inherit', 'inherit'] });`;
  const secret = openSync('/etc/hostname', 'r');
  try {
    const inherited = Array.from({ length: 38 }, () => secret);
    const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', program], {
      stdio: ['ignore', 'pipe', 'inherit', ...inherited],
      encoding: 'utf8',
    });
    return stdout.trim().split('\n').map(Number);
  } finally {
    closeSync(secret);
  }
}

it('a child process gets no files that its parent inherited beside the standard streams', () => {
  // 3 is the folder that ls lists
  expect(descriptorsOfGrandchild(true).toSorted((a, b) => a - b)).toEqual([0, 1, 2, 3]);
});
