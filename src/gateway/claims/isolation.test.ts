/**
 * One tenant never disturbs another (I11): with any fault in the database of one tenant, the runs of another are handed out.
 * (How fast: `npm run bench -- isolation`. That a slow tenant takes no places: the properties in `choose.test.ts`.)
 */
import { createServer, type Server, type Socket } from 'node:net';
import { Client } from 'pg';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { type Fleet, makeFleet, writeSchedulerStatus, type TestTenant } from '../../../test/harness/fleet.ts';
import { newId } from '../../kernel/id.ts';
import { silent } from '../../kernel/log.ts';
import { sql } from '../../kernel/sql.ts';
import type { Loader } from '../../loader/loader.ts';
import { type Address, addressOfUrl, onDatabase } from '../../postgres/address.ts';
import { BatchTurns } from './batch-turns.ts';
import { ClaimDesk } from './claim-desk.ts';
import { HeartbeatTenants } from '../desks/heartbeat-tenants.ts';

const runs = 20;
const flood = 5_000;

let fleet: Fleet;
let a: TestTenant;
let b: TestTenant;
let desk: ClaimDesk | undefined;
beforeAll(async () => {
  fleet = await makeFleet(['a', 'b']);
  [a, b] = fleet.tenants as [TestTenant, TestTenant];
  await Promise.all([
    writeSchedulerStatus(fleet, a, { ready: false }),
    writeSchedulerStatus(fleet, b, { ready: false }),
  ]);
});
afterEach(() => desk?.service.stop());
afterAll(() => fleet.close());

/** Hands out runs of a one by one to a worker with a single place, while b is reported to have ready runs all the time. */
async function handOut(loader: Loader = fleet.loader): Promise<string[]> {
  const control = fleet.control.db;
  const heartbeatTenants = new HeartbeatTenants(control, silent);
  desk = new ClaimDesk({ loader, control, heartbeatTenants, turns: new BatchTurns(), log: silent, leaseMs: 30_000 });
  const self = { worker: newId(), incarnation: 1, free: 1, wait_ms: 20_000, seen: {} };
  const lanes = { runtimes: ['none' as const], queues: ['default'] };
  const names: string[] = [];
  for (let ofA = 0; ofA < runs; ) {
    const polling = desk.claim({ ...self, ...lanes }, new AbortController().signal);
    desk.ready(b.row.id);
    await a.ready(1);
    desk.ready(a.row.id);
    const got = await polling;
    names.push(...got.map((run) => run.tenant_name));
    ofA = names.filter((name) => name === 'a').length;
  }
  return names;
}

/** A loader that uses this address for the database of b. */
function loaderWith(address: Address): Loader {
  return fleet.newLoader({
    addressOf: (row) => (row.id === b.row.id ? address : onDatabase(fleet.control.address, row.database)),
  });
}
const onlyA = Array.from({ length: runs }, () => 'a');

it('a tenant is served while the database of another does not answer', async () => {
  await b.ready(50);
  const locker = new Client({ connectionString: onDatabase(fleet.control.address, b.row.database).url });
  await locker.connect();
  await locker.query('begin; lock table millrace.live in access exclusive mode');
  try {
    expect(await handOut()).toEqual(onlyA);
  } finally {
    await locker.end();
  }
});

it('a tenant is served while the database of another refuses connections', async () => {
  expect(await handOut(loaderWith(addressOfUrl('postgresql://nobody@127.0.0.1:1/nothing')))).toEqual(onlyA);
});

it('a tenant is served while the database of another accepts connections but does not respond', async () => {
  const sockets = new Set<Socket>();
  const mute: Server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
  });
  await new Promise<void>((resolve) => mute.listen(0, '127.0.0.1', resolve));
  const address = mute.address();
  const port = typeof address === 'object' ? address?.port : undefined;
  expect(await handOut(loaderWith(addressOfUrl(`postgresql://nobody@127.0.0.1:${port}/nothing`)))).toEqual(onlyA);
  expect(sockets.size).toBeGreaterThan(0);
  for (const socket of sockets) socket.destroy();
  mute.close();
});

it('a tenant is served while the queue of another is corrupt', async () => {
  const db = await b.db();
  await db.exec(sql`alter table live rename to live_elsewhere`);
  try {
    expect(await handOut()).toEqual(onlyA);
  } finally {
    await db.exec(sql`alter table live_elsewhere rename to live`);
  }
});

it('a tenant has its turn while another is flooded', async () => {
  await b.ready(1);
  const db = await b.db();
  await db.exec(sql`
    insert into live (id, task_id, instant, version, attempt, priority, lane, rank, queued_at)
    select gen_random_uuid(), task_id, instant + n * interval '1 second', version, attempt, priority, lane, rank, queued_at
      from (select * from live limit 1) as one, generate_series(1, ${flood}::integer) as n`);
  await db.exec(sql`analyze live`);
  const names = await handOut();
  // in turn; an answer that is late because the machine is busy comes out of turn, with the next poll
  expect(names.length).toBeLessThan(4 * runs);
});
