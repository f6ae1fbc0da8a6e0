import { afterAll, beforeAll, expect, it } from 'vitest';
import { type ControlDatabase, makeControlDatabase } from '../../../test/harness/fresh-database.ts';
import { until } from '../../../test/harness/until.ts';
import type { HeartbeatRequest } from '../../contract/wire.ts';
import { newId } from '../../kernel/id.ts';
import { silent } from '../../kernel/log.ts';
import { sql } from '../../kernel/sql.ts';
import { noteWorker } from '../installation/queries.ts';
import { HeartbeatTenants } from './heartbeat-tenants.ts';

let control: ControlDatabase;
/** Ids of tenants. */
const [a, b, c] = [newId(), newId(), newId()];
beforeAll(async () => {
  control = await makeControlDatabase();
});
afterAll(() => control.close());

const keyId = newId();

/** Handles a heartbeat as a gateway does. Returns the tenants that it is sent to. */
async function beat(
  heartbeatTenants: HeartbeatTenants,
  worker: string,
  incarnation: number,
  held: string[] = [],
): Promise<Set<string>> {
  const holds = held.map((tenant) => ({ tenant, run: newId(), lease: 1 }));
  const self = { worker, incarnation, name: 'box', addr: '', version: '1', places: 8 };
  const request: HeartbeatRequest = { ...self, runtimes: ['none'], queues: ['default'], holds, seen: {} };
  const tenants = heartbeatTenants.tenantsOf(worker, holds);
  return new Set([...tenants, ...((await noteWorker(control.db, request, { tenants, keyId, at: new Date() })) ?? [])]);
}

const kept = async (worker: string): Promise<string[]> =>
  (await control.db.one<{ tenants: string[] }>(sql`select tenants from worker where id = ${worker}`)).tenants;

it('a heartbeat goes to the tenants that recently served the worker, and those whose runs it holds', async () => {
  const heartbeatTenants = new HeartbeatTenants(control.db, silent);
  const worker = newId();
  expect(await beat(heartbeatTenants, worker, 1)).toEqual(new Set());
  heartbeatTenants.note(worker, a);
  heartbeatTenants.note(newId(), c);
  expect(await beat(heartbeatTenants, worker, 1, [b])).toEqual(new Set([a, b]));
});

it('only the first heartbeat of a new incarnation goes to the tenants of the earlier one, at any gateway', async () => {
  const worker = newId();
  const first = new HeartbeatTenants(control.db, silent);
  await beat(first, worker, 1);
  first.note(worker, a);
  first.note(worker, b);
  first.note(worker, a);
  await until('it is kept at once', async () => (await kept(worker)).length === 2 || undefined);
  await beat(first, worker, 1, [c]);
  const second = new HeartbeatTenants(control.db, silent);
  expect(await beat(second, worker, 2)).toEqual(new Set([a, b, c]));
  expect(await beat(second, worker, 2)).toEqual(new Set());
});

it('a heartbeat of an older incarnation changes nothing', async () => {
  const worker = newId();
  const heartbeatTenants = new HeartbeatTenants(control.db, silent);
  await beat(heartbeatTenants, worker, 2, [a]);
  expect(await beat(heartbeatTenants, worker, 1, [b])).toEqual(new Set([b]));
  expect(await kept(worker)).toEqual([a]);
});

it('an unknown worker is served', async () => {
  const heartbeatTenants = new HeartbeatTenants(control.db, silent);
  const worker = newId();
  heartbeatTenants.note(worker, a);
  expect(heartbeatTenants.tenantsOf(worker, [])).toEqual([a]);
  const known = newId();
  await beat(heartbeatTenants, known, 1);
  heartbeatTenants.note(known, b);
  await until('the next is kept', async () => (await kept(known)).includes(b) || undefined);
});
