import { describe, expect, test } from 'vitest';
import type { Fault } from '../../errors.ts';
import { parseJob } from './parse-job.ts';

const start = '2024-01-01T00:00:00Z';
const trigger = { name: 'daily', start, period: '1d' };

function job(more: object = {}): unknown {
  return { project: 'p', name: 'j', triggers: [trigger], tasks: [{ name: 'a', depends: ['trigger/daily'] }], ...more };
}

function faults(input: unknown): readonly Fault[] {
  const parsed = parseJob(input);
  return parsed.ok ? [] : parsed.faults;
}

/** Expects a fault with this path, whose message contains the given text. */
function expectFault(input: unknown, path: string, message: string): void {
  expect(faults(input)).toEqual([{ path, message: expect.stringContaining(message) as unknown }]);
}

describe('rejected documents', () => {
  test.each<[string, object, string, string]>([
    ['an unknown field', { descripton: 'x' }, 'descripton', 'is not a field of a job; did you mean description?'],
    ['a strange field', { 'a b\n': 'x' }, '["a b\\n"]', 'is not a field of a job'],
    ['a bad uuid', { uuid: '8b6f2d0e' }, 'uuid', 'must be a UUID'],
    ['a slash in a name', { name: 'a/b' }, 'name', 'must not contain / or @'],
    ['an at in a project', { project: 'a@b' }, 'project', 'must not contain / or @'],
    ['a number for a name', { name: 5 }, 'name', 'must be text; put 5 in quotes'],
    ['a missing name', { name: undefined }, 'name', 'is required'],
    ['an empty name', { name: null }, 'name', 'must be text, not empty'],
    ['text for a flag', { paused: 'yes' }, 'paused', 'must be true or false, not text'],
    ['a mapping for a list', { tasks: {} }, 'tasks', 'must be a list, not a mapping'],
    ['a NUL in a text', { description: 'a\u0000b' }, 'description', 'must not contain NUL'],
    ['half of a surrogate pair', { description: 'a\ud800b' }, 'description', 'half of a surrogate pair'],
    ['a NUL in a param', { params: { x: ['\u0000'] } }, 'params.x[0]', 'must not contain NUL'],
    ['a bad param name', { params: { 'a b': 1 } }, 'params["a b"]', 'must be letters'],
    ['a number as an age', { retention: { age: 30 } }, 'retention.age', 'must be text; put 30 in quotes'],
    ['an age of zero', { retention: { age: '0s' } }, 'retention.age', 'must be longer than zero'],
    ['an age below a second', { retention: { age: '5ms' } }, 'retention.age', 'must be at least 1s'],
    ['no runs to keep', { retention: { runs: 0 } }, 'retention.runs', 'must be at least 1'],
    ['half a run to keep', { retention: { runs: 1.5 } }, 'retention.runs', 'must be a whole number, or forever'],
    ['runs in words', { retention: { runs: 'for ever' } }, 'retention.runs', 'must be a whole number, or forever'],
    ['retention in a word', { retention: 'forever' }, 'retention', 'must be a mapping, not text'],
    ['an unknown word of retention', { retention: { days: 3 } }, 'retention.days', 'is not a field of retention'],
    ['a value that is not JSON', { params: { x: new Date(0) } }, 'params.x', 'is not a JSON value'],
  ])('a document with %s is rejected', (_, more, path, message) => {
    expectFault(job(more), path, message);
  });

  test.each<[string, object, string, string]>([
    ['an unknown field', { timezon: 'UTC' }, '.timezon', 'is not a field of a trigger; did you mean timezone?'],
    ['no schedule', { period: undefined }, '.period', 'is required, or cron'],
    ['two schedules', { cron: '@daily' }, '.cron', 'together with period'],
    ['a period of zero', { period: '0s' }, '.period', 'must be longer than zero'],
    ['a negative period', { period: '-1d' }, '.period', 'must not be negative'],
    ['a period below a second', { period: '999ms' }, '.period', 'must be at least 1s'],
    ['a period of months by ISO', { period: 'P1M' }, '.period', 'depends on the calendar'],
    ['a period for ever', { period: '1001y' }, '.period', 'must not be longer than 1000 years'],
    ['a number as period', { period: 60 }, '.period', 'must be text; put 60 in quotes'],
    ['a bad cron', { period: null, cron: '61 * * * *' }, '.cron', 'has "61" as minute; it must be 0 to 59'],
    ['a cron that never fires', { period: null, cron: '0 0 30 2 *' }, '.cron', 'never fires'],
    [
      'a bad zone',
      { timezone: 'Europe/Berln' },
      '.timezone',
      'is not an IANA time zone such as Europe/Berlin; did you mean Europe/Berlin?',
    ],
    ['an offset as zone', { timezone: '+02:00' }, '.timezone', 'is not an IANA time zone'],
    ['an end at the start', { end: start }, '.end', 'must be later than start'],
    ['an end before the start', { end: '2024-01-01T00:30:00+01:00' }, '.end', 'must be later than start'],
    [
      'a start without offset',
      { start: '2024-01-01T00:00:00' },
      '.start',
      'is not an RFC 3339 timestamp with an offset',
    ],
    ['a day that does not exist', { start: '2024-02-30T00:00:00Z' }, '.start', 'does not exist'],
    ['an hour that does not exist', { start: '2024-02-20T24:00:00Z' }, '.start', 'does not exist'],
    ['a start before 1970', { start: '1969-12-31T23:59:59Z' }, '.start', 'years 1970 to 9999'],
    ['an offset beyond a day', { start: '2024-01-01T00:00:00+24:00' }, '.start', 'beyond 23:59'],
    ['microseconds', { start: '2024-01-01T00:00:00.000001Z' }, '.start', 'finer than a millisecond'],
    ['a bad offset', { offset: 'soon' }, '.offset', 'where a number is expected'],
    [
      'an unknown policy',
      { catchup: 'lates' },
      '.catchup',
      'must be one of none, earliest, latest, random, last; did you mean latest?',
    ],
    ['a window of zero', { catchup_window: '0s' }, '.catchup_window', 'must be longer than zero'],
  ])('a trigger with %s is rejected', (_, more, path, message) => {
    expectFault(job({ triggers: [trigger, { ...trigger, name: 'b', ...more }] }), `triggers[1]${path}`, message);
  });

  test.each<[string, object, string, string]>([
    ['an unknown field', { dependss: [] }, '.dependss', 'is not a field of a task; did you mean depends?'],
    ['a field of docker beside it', { image: 'x' }, '.image', 'did you mean docker.image?'],
    ['a field of a later version', { deadline: '1h' }, '.deadline', 'is not a field of a task'],
    ['a threshold of nothing', { threshold: 0 }, '.threshold', 'must be at least 1'],
    ['a threshold past all counting', { threshold: 2 ** 31 }, '.threshold', 'must be at most 2147483647'],
    ['half a threshold', { threshold: 1.5 }, '.threshold', 'must be a whole number'],
    ['a timeout of zero', { timeout: '0s' }, '.timeout', 'must be longer than zero'],
    ['a bad queue', { queue: 'a b' }, '.queue', 'must be 1 to 100 letters'],
    ['two runtimes', { docker: { image: 'x' }, process: { command: ['x'] } }, '.process', 'together with docker'],
    ['docker without an image', { docker: { args: [] } }, '.docker.image', 'is required'],
    ['docker with an empty image', { docker: { image: '' } }, '.docker.image', 'must not be empty'],
    [
      'an unknown field of docker',
      { docker: { image: 'x', arg: [] } },
      '.docker.arg',
      'is not a field of docker; did you mean args?',
    ],
    ['a number as argument', { docker: { image: 'x', args: [1] } }, '.docker.args[0]', 'put 1 in quotes'],
    ['an environment line without =', { docker: { image: 'x', env: ['A'] } }, '.docker.env[0]', 'must be KEY=VALUE'],
    [
      'an environment line without a name',
      { docker: { image: 'x', env: ['=A'] } },
      '.docker.env[0]',
      'a name before the =',
    ],
    [
      'text as environment',
      { docker: { image: 'x', env: 'A=1' } },
      '.docker.env',
      'must be a list of KEY=VALUE, or a mapping',
    ],
    [
      'a number in the environment',
      { process: { command: ['x'], env: { A: 1 } } },
      '.process.env.A',
      'must be text (numbers',
    ],
    [
      'an environment name with =',
      { process: { command: ['x'], env: { 'A=': '' } } },
      '.process.env["A="]',
      'must not contain =',
    ],
    [
      'more than a stash name',
      { process: { command: ['x'], env: { A: { stash: 's', x: 1 } } } },
      '.process.env.A.x',
      'is not a field',
    ],
    ['no command', { process: { command: [] } }, '.process.command', 'must not be empty'],
    ['an empty program', { process: { command: [''] } }, '.process.command[0]', 'must name the program'],
    ['text as command', { process: { command: 'ls' } }, '.process.command', 'must be a list, not text'],
    ['a nameless function', { function: { name: '' } }, '.function.name', 'must not be empty'],
    ['no number of attempts', { retry: {} }, '.retry.max_attempts', 'is required'],
    ['no attempts', { retry: { max_attempts: 0 } }, '.retry.max_attempts', 'must be at least 1'],
    ['a delay of zero', { retry: { max_attempts: 2, delay: '0s' } }, '.retry.delay', 'must be longer than zero'],
    ['a shrinking delay', { retry: { max_attempts: 2, factor: 0.5 } }, '.retry.factor', 'must be at least 1'],
    [
      'a cap below the delay',
      { retry: { max_attempts: 2, delay: '2m', cap: '1m' } },
      '.retry.cap',
      'must not be shorter than delay',
    ],
    ['too much jitter', { retry: { max_attempts: 2, jitter: 1.1 } }, '.retry.jitter', 'must be at most 1'],
    ['retries on success', { retry: { max_attempts: 2, on: ['success'] } }, '.retry.on[0]', 'must be one of failure'],
    ['retries on nothing', { retry: { max_attempts: 2, on: [] } }, '.retry.on', 'must not be empty'],
  ])('a task with %s is rejected', (_, more, path, message) => {
    expectFault(job({ tasks: [{ name: 'a' }, { name: 'b', ...more }] }), `tasks[1]${path}`, message);
  });

  test('duplicate names are rejected, but a task and a trigger may share a name', () => {
    expectFault(job({ triggers: [trigger, trigger] }), 'triggers[1].name', 'is also the name of triggers[0]');
    expectFault(
      job({ tasks: [{ name: 'a' }, { name: 'b' }, { name: 'a' }] }),
      'tasks[2].name',
      'is also the name of tasks[0]',
    );
    expect(faults(job({ tasks: [{ name: 'daily' }] }))).toEqual([]);
  });

  test('all faults are reported at once', () => {
    const input = {
      name: 'j@',
      colour: 'red',
      triggers: [
        { name: 'n', start: 'now', period: '1d', cron: '@daily' },
        7,
        { name: 'n', start, end: start, period: 'x' },
      ],
      tasks: [
        { depends: ['task/none', 5], threshold: 0 },
        { name: 'b', docker: {}, function: {}, depends_failure: ['trigger/n'] },
      ],
    };
    expect(new Set(faults(input).map(({ path }) => path))).toEqual(
      new Set([
        'project',
        'name',
        'colour',
        'triggers[0].start',
        'triggers[0].cron',
        'triggers[1]',
        'triggers[2].name',
        'triggers[2].end',
        'triggers[2].period',
        'tasks[0].name',
        'tasks[0].depends[0]',
        'tasks[0].depends[1]',
        'tasks[0].threshold',
        'tasks[1].docker.image',
        'tasks[1].function',
        'tasks[1].function.name',
        'tasks[1].depends_failure[0]',
      ]),
    );
  });
});
