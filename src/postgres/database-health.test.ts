import { afterEach, expect, it } from 'vitest';
import { until } from '../../test/harness/until.ts';
import { type DatabaseFault, DatabaseHealth } from './database-health.ts';

let databaseHealth: DatabaseHealth | undefined;
afterEach(() => databaseHealth?.service.stop());

const full = Object.assign(new Error('could not extend file: No space left on device'), { code: '53100' });
const since = '2026-06-01T12:03:00.000Z';
const now = (): number => Date.parse(since);

it('A database that does not answer is silent since the first read without an answer, until it answers', async () => {
  let release = (): void => {};
  let isFrozen = true;
  const told: (DatabaseFault | undefined)[] = [];
  const read = (): Promise<void> => (isFrozen ? new Promise((resolve) => (release = resolve)) : Promise.resolve());
  databaseHealth = new DatabaseHealth({ read, now, answerMs: 20, onChange: (fault) => told.push(fault) });
  await databaseHealth.service.start();
  await until('it is silent', () => databaseHealth?.fault);
  expect(databaseHealth.fault).toMatchObject({
    kind: 'silent',
    since: new Date(since),
    summary: `the database has not answered since ${since}`,
  });
  isFrozen = false;
  release();
  await until('it answers', () => databaseHealth?.fault === undefined || undefined);
  expect(told.map((fault) => fault?.kind)).toEqual(['silent', undefined]);
});

it('A database that cannot be reached is told with the error to those who may know', async () => {
  const read = () => Promise.reject(new Error('connect ECONNREFUSED 10.0.0.7:5432'));
  databaseHealth = new DatabaseHealth({ read, now });
  await databaseHealth.service.start();
  await until('it is unreachable', () => databaseHealth?.fault);
  expect(databaseHealth.fault).toMatchObject({
    kind: 'unreachable',
    summary: expect.not.stringContaining('10.0.0.7') as unknown,
  });
  expect(databaseHealth.fault?.detail).toContain('10.0.0.7');
});

it.each([
  ['ECONNREFUSED', 'ECONNREFUSED'],
  ['57P03', 'the database is starting or shutting down'],
])('A database that cannot be reached is told with the cause to anybody: %s', async (code, cause) => {
  const read = () => Promise.reject(Object.assign(new Error('at 10.0.0.7'), { code }));
  databaseHealth = new DatabaseHealth({ read, now });
  await databaseHealth.service.start();
  await until('it is unreachable', () => databaseHealth?.fault);
  const summary = `the database cannot be reached since ${since}: ${cause}`;
  expect(databaseHealth.fault).toMatchObject({ summary, detail: `${summary} (at 10.0.0.7)` });
});

it('A database that refuses two writes in a row takes none, until it takes one', () => {
  databaseHealth = new DatabaseHealth({ read: async () => {}, now });
  databaseHealth.noteWrite(full);
  expect(databaseHealth.fault).toBe(undefined);
  databaseHealth.noteWrite(full);
  expect(databaseHealth.fault).toEqual({
    kind: 'no_writes',
    since: new Date(since),
    summary: `the database refuses writes since ${since}: the disk of the database is full`,
    detail: `the database refuses writes since ${since}: the disk of the database is full (${full.message})`,
  });
  databaseHealth.noteWrite();
  expect(databaseHealth.fault).toBe(undefined);
});

it('A database that refused writes before it was lost is told with why it did', async () => {
  const read = () => Promise.reject(Object.assign(new Error('at 10.0.0.7'), { code: 'ENOENT' }));
  databaseHealth = new DatabaseHealth({ read, now });
  databaseHealth.noteWrite(full);
  databaseHealth.noteWrite(full);
  await databaseHealth.service.start();
  await until('it is unreachable', () => databaseHealth?.fault?.kind === 'unreachable' || undefined);
  const before = '; before that, it refused writes: the disk of the database is full';
  expect(databaseHealth.fault).toMatchObject({
    summary: `the database cannot be reached since ${since}: ENOENT${before}`,
    detail: `the database cannot be reached since ${since}: ENOENT (at 10.0.0.7)${before}`,
  });
});
