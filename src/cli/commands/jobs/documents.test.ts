import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { JobDefinition } from '../../../jobs/definition.ts';
import { parseJob } from '../../../jobs/document/parse-job.ts';
import type { JobDocument } from './documents.ts';
import { shell } from '../../../../test/harness/cli/shell.ts';
import { inOrder } from './order.ts';

let cwd = '';
beforeEach(async () => {
  cwd = await mkdtemp(join(tmpdir(), 'millrace-cli-'));
});
afterEach(() => rm(cwd, { recursive: true, force: true }));

async function files(texts: Record<string, string>): Promise<void> {
  for (const [name, text] of Object.entries(texts)) {
    await mkdir(dirname(join(cwd, name)), { recursive: true });
    await writeFile(join(cwd, name), text);
  }
}

const job = (name: string, tasks = 'tasks: [{name: t}]'): string =>
  `project: p\nname: ${name}\ndescription: ''\ntriggers: []\n${tasks}\n`;

describe('validate', () => {
  it('validate accepts files, folders and stdin, JSON and YAML of several documents', async () => {
    await files({
      'jobs/a.yaml': `${job('a')}---\n${job('b')}`,
      'jobs/deep/c.json': JSON.stringify({ project: 'p', name: 'c', description: '', triggers: [], tasks: [] }),
      'jobs/README.md': '# not a job',
      'jobs/.hidden/x.yaml': 'nonsense: true',
      'd.yml': job('d'),
    });
    const ran = await shell(['validate', '--json', 'jobs', 'd.yml', '-'], { cwd, stdin: job('e') });
    expect(ran.code).toBe(0);
    const answer = z
      .object({ ok: z.boolean(), jobs: z.array(z.object({ source: z.string() })) })
      .parse(JSON.parse(ran.stdout));
    expect(answer.ok).toBe(true);
    expect(answer.jobs.map(({ source }) => source)).toEqual([
      'jobs/a.yaml#1',
      'jobs/a.yaml#2',
      'jobs/deep/c.json',
      'd.yml',
      'stdin',
    ]);
  });

  it('validate lists every fault of every file with its path, and ends with 1', async () => {
    await files({
      'a.yaml': job('a', 'tasks: [{name: t, threshold: 0}]\nextra: 1'),
      'b.json': '{',
      'c.yaml': job('c'),
    });
    const { code, stdout, stderr } = await shell(['validate', 'a.yaml', 'b.json', 'c.yaml', 'none.yaml'], { cwd });
    expect(code).toBe(1);
    expect(stdout).toMatch(/^a\.yaml:tasks\[0\]\.threshold: /m);
    expect(stdout).toMatch(/^a\.yaml:extra: /m);
    expect(stdout).toMatch(/^b\.json: /m);
    expect(stdout).toMatch(/^none\.yaml: file not found$/m);
    expect(stdout).not.toContain('c.yaml');
    expect(stderr).toBe('4 faults\n');
  });

  it('validate finds duplicate names, and references to missing tasks of the given jobs', async () => {
    await files({
      'a.yaml': job('a'),
      'a2.yaml': job('a'),
      'b.yaml': job('b', 'tasks: [{name: t, depends: [c/task/nope, elsewhere/task/x]}]'),
      'c.yaml': job('c'),
    });
    const { stdout } = await shell(['validate', '.'], { cwd });
    expect(stdout.split('\n')).toEqual([
      'a2.yaml:name: p/a is also the name of the job in a.yaml',
      'b.yaml:tasks[0].depends[0]: p/c in c.yaml has no task nope',
      '',
    ]);
  });

  it('validate rejects a folder without job files, and bytes that are not text', async () => {
    await mkdir(join(cwd, 'empty'));
    await writeFile(join(cwd, 'x.yaml'), Uint8Array.of(0xff, 0xfe, 0x00));
    const { code, stdout } = await shell(['validate', 'empty', 'x.yaml'], { cwd });
    expect(code).toBe(1);
    expect(stdout).toBe('empty: holds no .json, .yaml or .yml file\nx.yaml: is not UTF-8 text\n');
  });

  it('validate prints warnings without failing', async () => {
    const task = 'tasks: [{name: s}, {name: t, depends: [task/s], threshold: 5}]';
    const { code, stderr } = await shell(['validate', '-'], { stdin: job('a', task) });
    expect(code).toBe(0);
    expect(stderr).toMatch(/^warning: stdin:tasks\[1\]\.threshold: /m);
  });
});

describe('schema', () => {
  it('schema prints one JSON value', async () => {
    const { code, stdout } = await shell(['schema']);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ type: 'object' });
  });
});

describe('order of jobs', () => {
  const document = (name: string, ...depends: string[]): JobDocument => {
    const parsed = parseJob({ project: 'p', name, description: '', triggers: [], tasks: [{ name: 't', depends }] });
    if (!parsed.ok) throw new Error(JSON.stringify(parsed.faults));
    return { source: name, job: parsed.job satisfies JobDefinition };
  };
  const names = (...documents: JobDocument[]): string[] => inOrder(documents).map(({ source }) => source);

  it('jobs that others refer to come first, and otherwise the order is kept', () => {
    const a = document('a', 'c/task/t');
    const b = document('b');
    const c = document('c', 'd/task/t', 'p/b/task/t');
    const d = document('d');
    expect(names(b, d)).toEqual(['b', 'd']);
    const order = names(a, b, c, d);
    expect(order.toSorted()).toEqual(['a', 'b', 'c', 'd']);
    for (const [first, second] of [
      ['c', 'a'],
      ['d', 'c'],
      ['b', 'c'],
    ] as const) {
      expect(order.indexOf(first)).toBeLessThan(order.indexOf(second));
    }
  });

  it('a cycle and a long chain of jobs are sorted', () => {
    expect(names(document('a', 'b/task/t'), document('b', 'a/task/t')).toSorted()).toEqual(['a', 'b']);
    const chain = Array.from({ length: 3000 }, (_, i) => document(`j${i}`, `j${i + 1}/task/t`));
    expect(names(...chain)[0]).toBe('j2999');
  });
});
