/** Documents in the idioms of Waterwheel's users, which must load unchanged. */
import { expect, test } from 'vitest';
import type { JobDefinition } from '../definition.ts';
import { parseJobText } from './parse-job.ts';

const uuid = '5f8f0b6e-52c4-4b57-9d3f-7d1a3b1c2e4f';

function load(text: string, format: 'json' | 'yaml' = 'yaml'): JobDefinition {
  const parsed = parseJobText(text, format);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.faults));
  // a job of only triggers exists for other jobs to depend on
  expect(parsed.warnings.map(({ path }) => path)).toEqual(parsed.job.tasks.length === 0 ? ['tasks'] : []);
  return parsed.job;
}

test('a job with fan-out, fan-in, a failure handler and a cleanup on either path is accepted', () => {
  const steps = ['b', 'c', 'd', 'e', 'f', 'g', 'h', 'i'];
  const job = load(`
uuid: ${uuid}
project: samples
name: big dag
description: fans out and in
triggers:
  - {name: every hour, start: 2024-01-01T00:00:00Z, period: 1h}
tasks:
  - name: a
    depends: [trigger/every hour]
    docker: {image: alpine, args: [echo, a], env: [STEP=a]}
${steps.map((step) => `  - {name: ${step}, depends: [task/a], docker: {image: alpine, args: [echo, ${step}]}}`).join('\n')}
  - {name: join, depends: [${steps.map((step) => `task/${step}`).join(', ')}]}
  - {name: failed, depends_failure: [task/a, ${steps.map((step) => `task/${step}`).join(', ')}]}
  - {name: cleanup, depends: [task/join, task/failed], threshold: 1}
`);
  const thresholds = Object.fromEntries(job.tasks.map(({ name, threshold }) => [name, threshold]));
  expect(thresholds).toMatchObject({ a: 1, b: 1, join: 8, failed: 1, cleanup: 1 });
  expect(job.tasks.find(({ name }) => name === 'failed')?.edges.map(({ kind }) => kind)).toEqual(
    Array(9).fill('failure'),
  );
});

test('a task that waits for its own earlier run and is started by a trigger that fires once is accepted', () => {
  const job = load(`
uuid: ${uuid}
project: samples
name: past
description: each day waits for the day before
triggers:
  - {name: daily, start: 2024-01-01T00:00:00Z, period: 1d}
  - {name: first, start: 2024-01-01T00:00:00Z, end: 2024-01-02T00:00:00Z, period: 1d}
tasks:
  - {name: start, depends: [trigger/first, task/end@1d], threshold: 1}
  - {name: work, depends: [trigger/daily, task/start], docker: {image: alpine, args: []}}
  - {name: end, depends: [task/work]}
`);
  expect(job.tasks[0]?.edges.map(({ offsetMs }) => offsetMs)).toEqual([0, 86_400_000]);
});

test('offsets on edges from triggers and tasks are accepted in JSON', () => {
  const document = {
    uuid,
    project: 'samples',
    name: 'offsets',
    description: '',
    triggers: [{ name: 'daily', start: '2024-01-01T00:00:00Z', period: '1d' }],
    tasks: [
      { name: 'early', depends: ['trigger/daily'] },
      { name: 'late', depends: ['trigger/daily@6h', 'task/early@6h'] },
    ],
  };
  expect(load(JSON.stringify(document), 'json').tasks[1]).toMatchObject({
    threshold: 2,
    edges: [{ offsetMs: 21_600_000 }, { kind: 'success' }],
  });
});

test('triggers with offsets, and with each catch-up policy, are accepted', () => {
  const policies = ['none', 'earliest', 'latest', 'random'];
  const job = load(`
uuid: ${uuid}
project: samples
name: clocks
description: clocks
paused: false
triggers:
  - {name: late, start: 2024-01-01T00:00:00Z, period: 5minutes, offset: 1m, catchup: none}
  - {name: early, start: 2024-01-01T00:00:00Z, period: 5minutes, offset: -3m, catchup: none}
  - {name: cron, start: 2024-01-01T00:00:00Z, cron: 0 0 * * * Mon-Fri *}
${policies.map((policy) => `  - {name: c ${policy}, start: 2024-01-01T00:00:00Z, period: 15m, catchup: ${policy}}`).join('\n')}
tasks: []
`);
  expect(job.triggers.map(({ offsetMs }) => offsetMs)).toEqual([60_000, -180_000, 0, 0, 0, 0, 0]);
  expect(job.triggers.slice(3).map(({ catchup }) => catchup)).toEqual(policies);
});

test('retries with tasks for success and failure are accepted', () => {
  const job = load(`
uuid: ${uuid}
project: samples
name: retry
description: fails sometimes
triggers: []
tasks:
  - name: flaky
    docker: {image: python, args: [-c, "import random; assert random.random() < 0.5"]}
    timeout: 50s
    retry: {max_attempts: 5, delay: 2m}
  - {name: good, depends: [task/flaky]}
  - {name: bad, depends_failure: [task/flaky]}
`);
  expect(job.tasks[0]).toMatchObject({
    timeoutMs: 50_000,
    retry: { maxAttempts: 5, delayMs: 120_000, on: ['failure', 'timeout'] },
  });
});

test('a job without triggers that follows the tasks of another job is accepted', () => {
  const job = load(`
uuid: ${uuid}
project: samples
name: follower
description: follows
triggers: []
tasks:
  - {name: after, depends: [big dag/task/join, other project/some job/task/done@1d]}
`);
  expect(job.foreignReferences.map(({ path, reference }) => [path, reference.project, reference.job])).toEqual([
    ['tasks[0].depends[0]', 'samples', 'big dag'],
    ['tasks[0].depends[1]', 'other project', 'some job'],
  ]);
});

test('a document as Waterwheel stores it, with null for absent fields, is accepted', () => {
  const document = {
    uuid,
    project: 'samples',
    name: 'stored',
    description: 'as stored',
    paused: null,
    triggers: [
      { name: 't', start: '2024-01-01T00:00:00Z', end: null, period: '1m', cron: null, offset: null, catchup: null },
    ],
    tasks: [
      {
        name: 'a',
        docker: null,
        depends: ['trigger/t'],
        depends_failure: null,
        threshold: null,
        retry: null,
        timeout: null,
      },
    ],
  };
  expect(load(JSON.stringify(document), 'json').tasks[0]?.runtime).toEqual({ kind: 'none' });
});

test('a reference that leads nowhere is rejected', () => {
  const text = `{"uuid": "${uuid}", "project": "p", "name": "n", "description": "", "triggers": [], "tasks": [{"name": "a", "depends": ["task/ghost"]}]}`;
  expect(parseJobText(text, 'json')).toMatchObject({ ok: false, faults: [{ path: 'tasks[0].depends[0]' }] });
});
