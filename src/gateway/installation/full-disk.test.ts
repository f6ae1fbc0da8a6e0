/** A database that answers but cannot write: the API reports it, and reading continues. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Fleet, makeFleet } from '../../../test/harness/fleet.ts';
import { makeTestGateway, type TestGateway } from '../../../test/harness/gateway.ts';
import { sql } from '../../kernel/sql.ts';

let fleet: Fleet;
let gateway: TestGateway;
let headers: Record<string, string>;
beforeAll(async () => {
  fleet = await makeFleet(['default']);
  gateway = makeTestGateway(fleet);
  headers = { authorization: `Bearer ${await gateway.key('operator', 'default')}` };
});
afterAll(() => fleet.close());

it('a write on a full disk is answered with 503 and the reason, and a read with 200', async () => {
  const db = await fleet.tenants[0]?.db();
  // the error of PostgreSQL when it cannot extend a file
  await db?.exec(sql`
    create function disk_is_full() returns trigger language plpgsql as $$
    begin
      raise exception using errcode = '53100', message = 'could not extend file "base/16384/1259": No space left';
    end $$`);
  await db?.exec(sql`create trigger full_disk before insert on project execute function disk_is_full()`);
  const answer = await gateway.fetch('PUT', '/api/projects', headers, { name: 'p' });
  expect(answer.status).toBe(503);
  const problem = await answer.text();
  expect(problem).toContain('the disk of the database is full');
  expect(problem).not.toContain('base/16384');
  expect((await gateway.fetch('GET', '/api/projects', headers)).status).toBe(200);
});
