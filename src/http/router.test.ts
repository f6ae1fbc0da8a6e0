/** Database errors as clients see them. */
import { expect, it } from 'vitest';
import { problemResponse } from './router.ts';

const withCode = (code: string): Error => Object.assign(new Error('as PostgreSQL says it'), { code });

it.each([
  ['53100', 'the disk of the database is full'],
  ['53200', 'the database is out of memory'],
  ['53300', 'the database has no connection left'],
  ['57P01', 'the database is being shut down'],
  ['57P03', 'the database is starting or shutting down'],
  ['25006', 'the database is read-only; it may be a standby'],
  ['58030', 'the database cannot read or write its files'],
  ['08006', 'the database cannot be reached'],
  ['ECONNREFUSED', 'the database cannot be reached'],
])('the database error %s becomes a 503 with a reason', async (code, reason) => {
  const logged: unknown[] = [];
  const answer = problemResponse(withCode(code), (error) => logged.push(error));
  expect(answer.status).toBe(503);
  expect(answer.headers.get('retry-after')).toBe('1');
  expect(await answer.json()).toMatchObject({ code: 'database_unavailable', detail: `${reason}; try again later` });
  expect(logged).toHaveLength(1);
});

it('any other database error becomes a 500 without its text', async () => {
  const answer = problemResponse(withCode('42P01'), () => {});
  expect(answer.status).toBe(500);
  expect(await answer.text()).not.toContain('as PostgreSQL says it');
});
