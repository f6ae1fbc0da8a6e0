import { expect, it } from 'vitest';
import type { SourceJob, SourceToken } from '../../../waterwheel/source.ts';
import { countTokens, type PlannedJob, planImport } from './plan.ts';

const project = { id: 'p', name: 'shop', description: '', config: null };
const id = '5f8f0b6e-52c4-4b57-9d3f-7d1a3b1c2e4f';
const at = (text: string): Date => new Date(`2026-01-01T${text}Z`);

function row(document: object, more: Partial<SourceJob> = {}): SourceJob {
  const text = JSON.stringify({ uuid: id, project: 'old name', name: 'old name', ...document });
  return { id, name: 'nightly', project_id: 'p', paused: false, document: text, triggers: [], tasks: [], ...more };
}

function planOf(job: SourceJob): PlannedJob {
  const { jobs, faults } = planImport({ projects: [project], jobs: [job], stash: [] }, []);
  if (jobs[0] === undefined) throw new Error(JSON.stringify(faults));
  return jobs[0];
}

it('a document gets the present names of its job and project, and loses the pause', () => {
  const job = planOf(row({ paused: false, triggers: null, tasks: [{ name: 'a', docker: null, depends: null }] }));
  expect(JSON.parse(job.text)).toEqual({
    uuid: id,
    project: 'shop',
    name: 'nightly',
    triggers: null,
    tasks: [{ name: 'a', docker: null, depends: null }],
  });
});

it('triggers and tasks that the document does not name are noted, and their positions left out', () => {
  const mark = { earliest: at('00:00:00'), latest: at('05:00:00') };
  const triggers = [{ name: 't', start: '2026-01-01T00:00:00Z', period: '1h' }];
  const job = planOf(
    row(
      { triggers, tasks: [] },
      {
        triggers: [
          { name: 't', ...mark },
          { name: 'gone', ...mark },
        ],
        tasks: ['left'],
      },
    ),
  );
  expect(job.triggers).toEqual([{ name: 't', ...mark }]);
  expect(job.notes).toEqual([
    'trigger gone is no longer in the document; Waterwheel still uses it, Millrace will not',
    'task left is no longer in the document; Waterwheel still uses it, Millrace will not',
  ]);
});

it.each([
  ['1h', '05:00:00', []],
  ['2h', '05:00:00', ['2026-01-01T06:00:00.000Z', '2026-01-01T07:00:00.000Z']],
  ['45m', '05:00:00', ['2026-01-01T05:15:00.000Z', '2026-01-01T05:45:00.000Z']],
])('of a trigger of %s that last fired at %s, a next instant that differs is noted', (period, latest, instants) => {
  const triggers = [{ name: 't', start: '2026-01-01T00:00:00Z', period }];
  const { notes } = planOf(
    row({ triggers, tasks: [] }, { triggers: [{ name: 't', earliest: at('00:00:00'), latest: at(latest) }] }),
  );
  expect(notes.length).toBe(instants.length === 0 ? 0 : 1);
  for (const instant of instants) expect(notes[0]).toContain(instant);
});

it('counts of tokens follow from what Waterwheel has stored and from what it would repeat', () => {
  const job = planOf(row({ tasks: [{ name: 'a' }, { name: 'join', depends: ['task/a', 'task/b'] }, { name: 'b' }] }));
  const token = (task: string, count: number, state: string): SourceToken => ({
    task,
    count,
    state,
    instant: at('00:00:00'),
  });
  const rows = [
    token('join', 1, 'waiting'),
    token('join', 0, 'cancelled'),
    token('join', 1, 'running'),
    token('a', 0, 'active'),
    token('a', -1, 'success'),
    token('gone', 1, 'waiting'),
  ];
  const counts = (again: boolean): [string, number][] =>
    countTokens(job, rows, again).tokens.map(({ task, count }) => [task, count]);
  expect(counts(false)).toEqual([
    ['join', 1],
    ['join', 2],
    ['join', 1],
  ]);
  expect(counts(true)).toEqual([
    ['join', 1],
    ['join', 2],
    ['join', 3],
    ['a', 1],
  ]);
  const { underWay, dropped } = countTokens(job, rows, false);
  expect([underWay.map(({ task }) => task), dropped]).toEqual([['join', 'a'], 2]);
});
