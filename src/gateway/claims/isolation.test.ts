/** One tenant never hurts another (I11): how long a tenant's runs wait for a free place, whatever its neighbour does. */
import { createServer, type Server, type Socket } from 'node:net';
import { Client } from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Fleet, makeFleet, writeSchedulerStatus, type TestTenant } from '../../../test/harness/fleet.ts';
import { measureHandOvers, percentile } from '../../../test/harness/hand-over.ts';
import { sql } from '../../kernel/sql.ts';
import type { Loader } from '../../loader/loader.ts';
import { type Address, addressOfUrl, onDatabase } from '../../postgres/address.ts';

const runs = 150;
const flood = 20_000;
/** What a busy machine adds to whatever is measured. */
const slackMs = 50;

let fleet: Fleet;
let a: TestTenant;
let b: TestTenant;
let aloneMs: number;
beforeAll(async () => {
  fleet = await makeFleet(['a', 'b']);
  [a, b] = fleet.tenants as [TestTenant, TestTenant];
  await Promise.all([
    writeSchedulerStatus(fleet, a, { ready: false }),
    writeSchedulerStatus(fleet, b, { ready: false }),
  ]);
  aloneMs = await measure({ noisy: [] });
});
afterAll(() => fleet.close());

/** The 99th percentile. */
async function measure(more: { loader?: Loader; noisy?: TestTenant[] } = {}): Promise<number> {
  const { loader = fleet.loader, noisy = [b] } = more;
  const times = await measureHandOvers({ fleet, loader, tenant: a, noisy, runs });
  return percentile(times, 0.99);
}

/** A loader for which the neighbour's database is elsewhere. */
function loaderWith(address: Address): Loader {
  return fleet.newLoader({
    addressOf: (row) => (row.id === b.row.id ? address : onDatabase(fleet.control.address, row.database)),
  });
}

const unhurt = (ms: number): void => expect(ms).toBeLessThan(2 * aloneMs + slackMs);

it('does not notice that its neighbour’s database hangs', async () => {
  await b.ready(50);
  const locker = new Client({ connectionString: onDatabase(fleet.control.address, b.row.database).url });
  await locker.connect();
  await locker.query('begin; lock table millrace.live in access exclusive mode');
  try {
    unhurt(await measure());
  } finally {
    await locker.end();
  }
});

it('does not notice that its neighbour’s database refuses connections', async () => {
  unhurt(await measure({ loader: loaderWith(addressOfUrl('postgresql://nobody@127.0.0.1:1/nothing')) }));
});

it('does not notice that its neighbour’s database accepts connections and says nothing', async () => {
  const sockets = new Set<Socket>();
  const mute: Server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
  });
  await new Promise<void>((resolve) => mute.listen(0, '127.0.0.1', resolve));
  const address = mute.address();
  const port = typeof address === 'object' ? address?.port : undefined;
  unhurt(await measure({ loader: loaderWith(addressOfUrl(`postgresql://nobody@127.0.0.1:${port}/nothing`)) }));
  expect(sockets.size).toBeGreaterThan(0);
  for (const socket of sockets) socket.destroy();
  mute.close();
});

it('does not notice that its neighbour’s queue is corrupt', async () => {
  const db = await b.db();
  await db.exec(sql`alter table live rename to live_elsewhere`);
  try {
    unhurt(await measure());
  } finally {
    await db.exec(sql`alter table live_elsewhere rename to live`);
  }
});

it('waits for no more than its turn while its neighbour is flooded', async () => {
  await b.ready(1);
  const db = await b.db();
  await db.exec(sql`
    insert into live (id, task_id, instant, version, attempt, priority, lane, rank, queued_at)
    select gen_random_uuid(), task_id, instant + n * interval '1 second', version, attempt, priority, lane, rank, queued_at
      from (select * from live limit 1) as one, generate_series(1, ${flood}::integer) as n`);
  await db.exec(sql`analyze live`);
  unhurt(await measure());
});
