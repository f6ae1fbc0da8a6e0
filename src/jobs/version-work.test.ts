import { expect, it } from 'vitest';
import { parseJob } from './document/parse-job.ts';
import { formatWork } from './version-work.ts';

function workOf(document: object): unknown {
  const parsed = parseJob({ project: 'p', name: 'j', description: '', ...document });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.faults));
  return JSON.parse(formatWork(parsed.job) ?? 'null');
}

it('the work of a version has the params and what each task needs, by name', () => {
  const document = { params: { a: 1 }, tasks: [{ name: '__proto__', queue: 'gpu', timeout: '5m' }] };
  const task = { timeoutMs: 300_000, queue: 'gpu', runtime: { kind: 'none' } };
  expect(workOf(document)).toEqual({ form: 1, params: { a: 1 }, tasks: Object.fromEntries([['__proto__', task]]) });
});

it('the work of a large version is not stored', () => {
  const tasks = Array.from({ length: 100 }, (_, i) => ({ name: `t${i}`, process: { command: ['x'.repeat(1_000)] } }));
  expect(workOf({ tasks })).toBeNull();
});
