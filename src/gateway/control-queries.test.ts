import { afterAll, beforeAll, expect, it } from 'vitest';
import { type ControlDatabase, makeControlDatabase } from '../../test/harness/fresh-database.ts';
import type { HeartbeatRequest } from '../contract/wire.ts';
import { newId } from '../kernel/id.ts';
import { sql } from '../kernel/sql.ts';
import { noteWorker } from './control-queries.ts';

let control: ControlDatabase;
beforeAll(async () => {
  control = await makeControlDatabase();
});
afterAll(() => control.close());

it.each([
  ['how many places are taken, by its own word', { taken: 1 }, 1],
  ['by what it holds, where it does not say', {}, 2],
])('notes of a worker %s', async (_, said, running) => {
  const self = { worker: newId(), incarnation: 1, name: 'box', addr: '', version: '1', places: 8 };
  const holds = [newId(), newId()].map((run) => ({ tenant: newId(), run, lease: 1 }));
  const beat: HeartbeatRequest = { ...self, runtimes: ['none'], queues: ['default'], holds, seen: {}, ...said };
  await noteWorker(control.db, beat, { tenants: [], at: new Date() });
  const noted = await control.db.one(sql`select places, running from worker where id = ${self.worker}`);
  expect(noted).toEqual({ places: 8, running });
});
