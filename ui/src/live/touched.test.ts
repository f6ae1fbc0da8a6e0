import { expect, test } from 'vitest';
import { keys } from '../queries.ts';
import { touchedBy } from './touched.ts';

test('a run touches itself, its job, and later what sums up', () => {
  const { soon, later } = touchedBy({ jobs: ['j'], runs: ['r'] });
  expect(soon).toEqual([keys.jobState('j'), keys.run('r')]);
  expect(later).toEqual(expect.arrayContaining([keys.overview, keys.jobs]));
  expect(soon).not.toContainEqual(keys.jobWritten('j'));
});

test('more than can be named touches every job and run, and no document', () => {
  expect(touchedBy({ many: true }).soon).toEqual([['job state'], ['run']]);
  expect(touchedBy({ jobs: ['j'] }).soon).toEqual([keys.jobState('j'), ['run']]);
});

test('a new document touches the written data of the job', () => {
  const { soon } = touchedBy({ written: ['j'], jobs: ['j'], people: true });
  expect(soon).toEqual(expect.arrayContaining([keys.jobWritten('j'), keys.jobs, keys.audit]));
});

test('an execution touches itself, and later the lists that have it or count it', () => {
  const counts = [keys.executions, keys.flows, keys.overview];
  expect(touchedBy({ executions: ['e'] })).toEqual({ soon: [keys.execution('e')], later: counts });
  expect(touchedBy({ anyExecution: true })).toEqual({ soon: [['execution']], later: counts });
});

test('work items and flows touch their lists', () => {
  expect(touchedBy({ workitems: true })).toEqual({ soon: [keys.workitems], later: [] });
  expect(touchedBy({ flows: true }).soon).toEqual([keys.flows, keys.search]);
});

test('who missed too much reads all again', () => {
  expect(touchedBy({ all: true })).toEqual({ soon: [[]], later: [] });
});

test('changes of workers and late runs touch no job', () => {
  expect(touchedBy({ fleet: true })).toEqual({ soon: [keys.fleet], later: [keys.overview] });
  expect(touchedBy({ scheduler: true })).toEqual({ soon: [keys.tenants], later: [] });
  expect(touchedBy({ late: true })).toEqual({ soon: [], later: [keys.overview] });
});
