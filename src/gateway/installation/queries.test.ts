import { afterAll, beforeAll, expect, it } from 'vitest';
import { type ControlDatabase, makeControlDatabase } from '../../../test/harness/fresh-database.ts';
import type { HeartbeatRequest } from '../../contract/wire.ts';
import { newId } from '../../kernel/id.ts';
import { sql } from '../../kernel/sql.ts';
import { noteWorker, readCandidates } from './queries.ts';

let control: ControlDatabase;
beforeAll(async () => {
  control = await makeControlDatabase();
});
afterAll(() => control.close());

it.each([
  ['as it reports them', { taken: 1 }, 1],
  ['as the number of held runs, if it reports none', {}, 2],
])('the taken places of a worker are recorded %s', async (_, said, running) => {
  const self = { worker: newId(), incarnation: 1, name: 'box', addr: '', version: '1', places: 8 };
  const holds = [newId(), newId()].map((run) => ({ tenant: newId(), run, lease: 1 }));
  const beat: HeartbeatRequest = { ...self, runtimes: ['none'], queues: ['default'], holds, seen: {}, ...said };
  await noteWorker(control.db, beat, { tenants: [], keyId: newId(), at: new Date() });
  const noted = await control.db.one(sql`select places, running from worker where id = ${self.worker}`);
  expect(noted).toEqual({ places: 8, running });
});

it('a tenant that is just starting is not a candidate, and one that has been starting for long is', async () => {
  const started = async (ago: string): Promise<string> => {
    const id = newId();
    await control.db.exec(sql`
      insert into tenant (id, name, database, created_at) values (${id}, ${id}, ${id}, now())`);
    await control.db.exec(sql`
      insert into launch (tenant_id, state, code, reason, changed_at)
      values (${id}, 'ALLOCATED', 'starting', 'starting', now() - ${ago}::interval)`);
    return id;
  };
  const [now, long] = [await started('1 s'), await started('30 s')];
  const { silent } = await readCandidates(control.db);
  expect(silent).toContain(long);
  expect(silent).not.toContain(now);
});
