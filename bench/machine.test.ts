import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { commitOf } from './machine.ts';

let folder = '';
const git = (...args: string[]): string =>
  execFileSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@example.com', '-c', 'commit.gpgsign=false', ...args], {
    cwd: folder,
    encoding: 'utf8',
  }).trim();

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'millrace-bench-'));
  await mkdir(join(folder, 'docs', 'benchmarks'), { recursive: true });
  await writeFile(join(folder, 'code.ts'), '1');
  await writeFile(join(folder, 'docs', 'benchmarks', 'results.md'), '# Benchmarks\n');
  git('init', '--quiet');
  git('add', '.');
  git('commit', '--quiet', '--message', 'first');
});
afterAll(() => rm(folder, { recursive: true, force: true }));

it('commitOf ignores results appended to docs/benchmarks/results.md and reports changed code', async () => {
  const commit = git('rev-parse', '--short', 'HEAD');
  expect(commitOf(folder)).toBe(commit);
  await writeFile(join(folder, 'docs', 'benchmarks', 'results.md'), '# Benchmarks\n\n### a result\n');
  expect(commitOf(folder)).toBe(commit);
  await writeFile(join(folder, 'code.ts'), '2');
  expect(commitOf(folder)).toBe(`${commit}, changed since`);
});
