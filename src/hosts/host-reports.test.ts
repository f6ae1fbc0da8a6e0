import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Fleet, makeFleet } from '../../test/harness/fleet.ts';
import { Bell } from '../kernel/bell.ts';
import { newId } from '../kernel/id.ts';
import { pause } from '../kernel/service.ts';
import { sql } from '../kernel/sql.ts';
import { systemTime } from '../kernel/time.ts';
import { ordersFor, registerHost, writeReports } from './host-queries.ts';
import { reasons } from '../control/reasons.ts';
import { HostReports } from './host-reports.ts';

let fleet: Fleet;
beforeAll(async () => {
  fleet = await makeFleet(['a', 'b', 'c']);
});
afterAll(() => fleet.close());

it('reports that the database rejects do not delay others, and are written later', async () => {
  const { db, pool } = fleet.control;
  const hostId = newId();
  await registerHost(db, { id: hostId, machine: 'here', pid: 1, engine: '1.0.0', memory: 1 });
  const errors: unknown[] = [];
  const reports = new HostReports({
    bell: new Bell(systemTime),
    write: (some) =>
      db.transaction(async (tx) => {
        await tx.exec(sql`set local lock_timeout to 50`);
        await writeReports(tx, hostId, some);
      }),
    onError: (error) => errors.push(error),
    againMs: 1,
  });
  const [a = '', b = '', c = ''] = fleet.tenants.map(({ row }) => row.id);
  const rest = { engine: '1.0.0', phase: 'ended' } as const;
  const say = (orderNo: number): void => {
    const reason = reasons.error('crashed', `no ${orderNo}`);
    for (const tenantId of [a, b, c]) reports.add({ ...rest, orderNo, tenantId, id: newId(), reason });
  };
  const said = async (): Promise<Record<string, string>> => {
    const rows = await db.rows<{ tenant_id: string; reason: string }>(sql`select tenant_id, reason from scheduler`);
    return Object.fromEntries(rows.map(({ tenant_id, reason }) => [tenant_id, reason]));
  };
  say(1);
  await reports.flush();
  const locker = await pool.connect();
  await locker.query('begin');
  await locker.query('select from control.scheduler where tenant_id = $1 for update', [b]);
  say(2);
  await reports.flush();
  expect(await said()).toEqual({ [a]: 'no 2', [b]: 'no 1', [c]: 'no 2' });
  expect([reports.unsaid, errors.length]).toEqual([[b], 1]);
  await locker.query('rollback');
  locker.release();
  await pause(5);
  await reports.flush();
  expect([await said(), reports.unsaid]).toEqual([{ [a]: 'no 2', [b]: 'no 2', [c]: 'no 2' }, []]);
});

it('the host that ran a tenant last stays recorded after other hosts have tried', async () => {
  const { db } = fleet.control;
  const [tenantId = ''] = fleet.tenants.map(({ row }) => row.id);
  await db.exec(sql`delete from scheduler`);
  const [ran, tries] = [newId(), newId()];
  for (const id of [ran, tries]) await registerHost(db, { id, machine: 'here', pid: 1, engine: '1.0.0', memory: 1 });
  const say = (hostId: string, orderNo: number, phase: 'starting' | 'running' | 'ended'): Promise<void> =>
    writeReports(db, hostId, [{ tenantId, orderNo, id: newId(), engine: '1.0.0', phase, reason: null }]);
  await say(ran, 1, 'starting');
  await say(ran, 1, 'running');
  for (const orderNo of [2, 3]) {
    await say(tries, orderNo, 'starting');
    await say(tries, orderNo, 'ended');
  }
  await db.exec(sql`
    insert into launch (tenant_id, state, code, reason, host_id, engine, order_no, ordered, changed_at)
    values (${tenantId}, 'ALLOCATED', 'starting', 'starting', ${tries}, '1.0.0', 4, true, now())`);
  expect((await ordersFor(db, tries)).orders).toMatchObject([{ orderNo: 4, lastHosts: [ran, tries] }]);
});
