import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Fleet, makeFleet } from '../../../test/harness/fleet.ts';
import { newId } from '../../kernel/id.ts';
import { sql } from '../../kernel/sql.ts';
import { registerHost, writeReports } from '../../hosts/host-queries.ts';
import { forgetProcesses, restEntries, retireHosts } from './host-shutdown.ts';

let fleet: Fleet;
let hostId = '';
const launcherId = newId();
beforeAll(async () => {
  fleet = await makeFleet(['runs', 'stopped']);
});
afterAll(() => fleet.close());

const db = () => fleet.control.db;
const idOf = (name: string): string => fleet.tenants.find(({ row }) => row.name === name)?.row.id ?? '';

/** A launcher, a host, and two tenants: one runs there, the other was stopped. */
beforeEach(async () => {
  for (const table of [sql`host`, sql`launcher`, sql`slot`, sql`scheduler`, sql`launch`])
    await db().exec(sql`delete from ${table}`);
  hostId = newId();
  await registerHost(db(), { id: hostId, machine: 'm', pid: 1, engine: '1', memory: 1 });
  await db().exec(sql`
    insert into launcher (id, machine, pid, version, started_at, beat_at) values (${launcherId}, 'm', 2, '1', now(), now())`);
  await db().exec(sql`update launcher_lease set holder = ${launcherId}, epoch = epoch + 1, renewed_at = now()`);
  await db().exec(sql`
    insert into launch (tenant_id, state, code, reason, host_id, engine, order_no, ordered, changed_at)
    values (${idOf('runs')}, 'STARTED', null, null, ${hostId}, '1', 4, true, now()),
           (${idOf('stopped')}, 'DISABLED', 'stopped_by_user', 'stopped by user', null, null, 2, false, now())`);
  await db().exec(sql`
    insert into slot (id, kind, tenant_id, holder, reason, asked_at, granted_at)
    values (${newId()}, 'scheduler', ${idOf('runs')}, ${hostId}, 'scheduler', now(), now())`);
  const report = { tenantId: idOf('runs'), orderNo: 4, id: newId(), engine: '1', reason: null } as const;
  await writeReports(db(), hostId, [{ ...report, phase: 'running' }]);
});

const states = () =>
  db().rows(sql`
    select name, state, code, ordered, order_no from launch join tenant on tenant.id = tenant_id order by name`);
const stopped = { name: 'stopped', state: 'DISABLED', code: 'stopped_by_user', ordered: false, order_no: 2 };
const count = async (table: 'host' | 'launcher' | 'slot'): Promise<number> => {
  const counts = { host: sql`host`, launcher: sql`launcher`, slot: sql`slot` };
  return (await db().one<{ n: number }>(sql`select count(*)::integer as n from ${counts[table]}`)).n;
};

describe('where no process can be alive', () => {
  it('all are forgotten, what ran is to be run at once, and what was stopped stays so', async () => {
    const { epoch } = await db().one<{ epoch: number }>(sql`select epoch from launcher_lease`);
    await forgetProcesses(db());
    expect([await count('host'), await count('launcher'), await count('slot')]).toEqual([0, 0, 0]);
    expect(await states()).toEqual([
      { name: 'runs', state: 'ENABLED', code: 'starting', ordered: false, order_no: 4 },
      stopped,
    ]);
    expect(await db().rows(sql`select phase, order_no from scheduler`)).toEqual([{ phase: 'ended', order_no: 4 }]);
    // one that was only frozen, whatever else says it cannot be, is refused
    await expect(db().exec(sql`select assert_epoch(${epoch})`)).rejects.toMatchObject({ code: 'MR001' });
  });
});

describe('a launcher that ends', () => {
  const leave = async (): Promise<void> => {
    await db().exec(sql`update launcher_lease set holder = null`);
    await db().exec(sql`delete from launcher`);
  };

  it('tells its hosts to leave, and waits for them', async () => {
    await leave();
    const told: string[] = [];
    const undo = fleet.hub.on('orders', hostId, () => told.push('orders'));
    const retiring = retireHosts(db(), fleet.hub, 5_000);
    for (;;) {
      const leaving = await db().maybeOne(sql`select 1 from host where leaving`);
      if (leaving !== undefined) break;
    }
    await db().exec(sql`delete from host`);
    expect(await retiring).toBe(true);
    expect(told).toEqual(['orders']);
    undo();
  });

  it('does not wait for ever', async () => {
    await leave();
    expect(await retireHosts(db(), fleet.hub, 100)).toBe(false);
  });

  it('leaves them alone when another launcher is there', async () => {
    expect(await retireHosts(db(), fleet.hub, 100)).toBe(true);
    expect(await db().rows(sql`select leaving from host`)).toEqual([{ leaving: false }]);
  });

  it('says of nothing that it runs, once its hosts are gone', async () => {
    await leave();
    await restEntries(db());
    // its host is still there: so is its scheduler
    expect(await states()).toMatchObject([{ state: 'STARTED' }, stopped]);
    await db().exec(sql`delete from host`);
    await restEntries(db());
    expect(await states()).toEqual([
      { name: 'runs', state: 'ENABLED', code: 'starting', ordered: false, order_no: 4 },
      stopped,
    ]);
    expect(await count('slot')).toBe(0);
  });

  it('says nothing where another stands by, which may not have the lease yet', async () => {
    await db().exec(sql`update launcher_lease set holder = null`);
    await db().exec(sql`delete from host`);
    await restEntries(db());
    expect(await states()).toMatchObject([{ state: 'STARTED' }, stopped]);
  });

  it('says nothing where another has the lease', async () => {
    await db().exec(sql`delete from host`);
    await restEntries(db());
    expect(await states()).toMatchObject([{ state: 'STARTED' }, stopped]);
  });
});
