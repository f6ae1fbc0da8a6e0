import { describe, expect, test } from 'vitest';
import type { JobDefinition } from '../definition.ts';
import { parseJob, parseJobText } from './parse-job.ts';

const start = '2024-01-01T00:00:00Z';
const trigger = { name: 'daily', start, period: '1d' };

function job(more: object = {}): unknown {
  return { project: 'p', name: 'j', triggers: [trigger], tasks: [{ name: 'a', depends: ['trigger/daily'] }], ...more };
}

function accepted(input: unknown): JobDefinition {
  const parsed = parseJob(input);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.faults));
  return parsed.job;
}

describe('accepted documents', () => {
  test('every default is applied', () => {
    const document = {
      project: 'p',
      name: 'j',
      tasks: [{ name: 'a' }],
      triggers: [{ name: 't', start, cron: '@daily' }],
    };
    expect(accepted(document)).toEqual({
      uuid: null,
      project: 'p',
      name: 'j',
      description: '',
      paused: null,
      params: {},
      maxActiveInstants: null,
      overlap: 'queue',
      retention: {},
      triggers: [
        {
          name: 't',
          startMs: Date.parse(start),
          endMs: null,
          periodMs: null,
          cron: '@daily',
          timezone: null,
          offsetMs: 0,
          catchup: 'earliest',
          catchupWindowMs: null,
        },
      ],
      tasks: [
        {
          name: 'a',
          runtime: { kind: 'none' },
          queue: 'default',
          maxRunning: null,
          pool: null,
          edges: [],
          threshold: 1,
          retry: { maxAttempts: 1, delayMs: 300_000, factor: 1, capMs: null, jitter: 0, on: ['failure', 'timeout'] },
          timeoutMs: 4 * 3_600_000,
        },
      ],
      foreignReferences: [],
      document,
    });
  });

  test.each<[string, object | null, object]>([
    ['an age', { age: '90d' }, { age_ms: 90 * 86_400_000 }],
    ['a number of runs', { runs: 10 }, { runs: 10 }],
    ['both', { age: '1h 30m', runs: 1 }, { age_ms: 5_400_000, runs: 1 }],
    ['for ever, which is null', { age: 'forever', runs: 'forever' }, { age_ms: null, runs: null }],
    ['nothing, which follows the installation', { age: null, runs: null }, {}],
    ['an empty mapping', {}, {}],
  ])('retention may be given by %s', (_, retention, kept) => {
    expect(accepted({ project: 'p', name: 'j', retention }).retention).toEqual(kept);
  });

  test('an optional field may be null', () => {
    const nulls = (fields: string) => Object.fromEntries(fields.split(' ').map((field) => [field, null]));
    const task = {
      name: 'a',
      ...nulls('docker process function depends depends_failure depends_done threshold retry timeout queue'),
    };
    const document = {
      ...nulls('uuid description paused params retention'),
      project: 'p',
      name: 'j',
      triggers: [{ ...trigger, ...nulls('end cron timezone offset catchup catchup_window') }],
      tasks: [task, { name: 'b', retry: { max_attempts: 2, ...nulls('delay factor cap jitter on') } }],
    };
    expect(accepted(document).tasks[1]?.retry.delayMs).toBe(300_000);
    expect(accepted({ project: 'p', name: 'j', triggers: null, tasks: null }).tasks).toEqual([]);
  });

  test('every field of a trigger is read', () => {
    const full = {
      ...trigger,
      end: '2024-02-01T12:00:00+02:00',
      timezone: 'Europe/Berlin',
      offset: '-1h 30m',
      catchup: 'last',
      catchup_window: 'P7D',
    };
    expect(accepted(job({ triggers: [full] })).triggers[0]).toEqual({
      name: 'daily',
      startMs: Date.parse(start),
      endMs: Date.parse('2024-02-01T10:00:00Z'),
      periodMs: 86_400_000,
      cron: null,
      timezone: 'Europe/Berlin',
      offsetMs: -5_400_000,
      catchup: 'last',
      catchupWindowMs: 7 * 86_400_000,
    });
  });

  test('the runtime of each task is read', () => {
    const tasks = [
      { name: 'd', docker: { image: 'alpine', args: ['x'], env: ['A=1', 'B=x=y', 'A=2'] } },
      {
        name: 'p',
        process: { command: ['sh', '-c', ':'], env: { A: '1', B: { stash: 'secret' } }, cwd: '/tmp' },
        queue: 'big',
      },
      { name: 'f', function: { name: 'lib/run@1', input: { deep: [1, null, 'x'] } } },
      { name: 'g', function: { name: 'g' } },
    ];
    expect(accepted(job({ tasks })).tasks.map(({ runtime }) => runtime)).toEqual([
      {
        kind: 'docker',
        image: 'alpine',
        args: ['x'],
        env: { A: '2', B: 'x=y' },
      },
      {
        kind: 'process',
        command: ['sh', '-c', ':'],
        env: { A: '1', B: { stash: 'secret' } },
        cwd: '/tmp',
      },
      { kind: 'function', name: 'lib/run@1', input: { deep: [1, null, 'x'] } },
      { kind: 'function', name: 'g', input: null },
    ]);
    expect(accepted(job({ tasks })).tasks[1]?.queue).toBe('big');
  });

  test('the default threshold is the number of depends and depends_done edges, at least one', () => {
    const thresholds = (task: object) =>
      accepted(job({ tasks: [{ name: 'x' }, { name: 'y' }, { name: 'a', ...task }] })).tasks[2]?.threshold;
    expect(thresholds({})).toBe(1);
    expect(thresholds({ depends: [] })).toBe(1);
    expect(thresholds({ depends_failure: ['task/x', 'task/y'] })).toBe(1);
    expect(thresholds({ depends: ['task/x', 'task/y'], depends_done: ['task/x'], depends_failure: ['task/y'] })).toBe(
      3,
    );
    expect(thresholds({ depends: ['task/x', 'task/y'], threshold: 1 })).toBe(1);
  });

  test('the retry policy is read', () => {
    const retry = {
      max_attempts: 5,
      delay: '2m',
      factor: 2,
      cap: '1h',
      jitter: 0.5,
      on: ['error', 'timeout', 'error'],
    };
    expect(accepted(job({ tasks: [{ name: 'a', retry }] })).tasks[0]?.retry).toEqual({
      maxAttempts: 5,
      delayMs: 120_000,
      factor: 2,
      capMs: 3_600_000,
      jitter: 0.5,
      on: ['error', 'timeout'],
    });
  });

  test('the document is kept unchanged, and its uuid is read in lower case', () => {
    const document = job({ uuid: '8B6F2D0E-8A64-4B3C-9D1F-0D7F6F1F2A10', paused: true, params: { day: [1] } });
    expect(accepted(document).document).toBe(document);
    expect(accepted(document)).toMatchObject({
      uuid: '8b6f2d0e-8a64-4b3c-9d1f-0d7f6f1f2a10',
      paused: true,
      params: { day: [1] },
    });
  });
});

test('a job without tasks is warned of', () => {
  const none = { path: 'tasks', message: 'has no tasks: the job does nothing' };
  const message = `${none.message}, unless tasks of other jobs depend on its triggers`;
  expect(parseJob(job({ tasks: [] }))).toMatchObject({ ok: true, warnings: [{ ...none, message }] });
  expect(parseJob({ project: 'p', name: 'j' })).toMatchObject({ ok: true, warnings: [none] });
  expect(parseJob(job())).toMatchObject({ ok: true, warnings: [] });
});

test('JSON and YAML texts are parsed like values', () => {
  expect(parseJobText('project: p\nname: j', 'yaml')).toMatchObject({
    ok: true,
    job: { name: 'j', document: { project: 'p' } },
  });
  expect(parseJobText('{"project": "p", "name": "j"}', 'json')).toMatchObject({ ok: true });
  expect(parseJobText('a: [', 'yaml')).toMatchObject({ ok: false });
  expect(parseJobText('[1]', 'json')).toEqual({
    ok: false,
    faults: [{ path: '', message: 'must be a mapping, not a list' }],
  });
});
