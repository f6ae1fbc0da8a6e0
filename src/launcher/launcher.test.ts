import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { engineOne, makeStage, type Stage } from '../../test/harness/launching.ts';
import { until } from '../../test/harness/until.ts';
import { sql } from '../kernel/sql.ts';

let stage: Stage;
beforeEach(async () => {
  stage = await makeStage();
});
afterEach(() => stage.close());

describe('a launcher', () => {
  it('has every wanted tenant run by a host of its version', async () => {
    const host = await stage.host();
    const [a, b] = [await stage.tenant('a'), await stage.tenant('b')];
    await stage.launch();
    for (const tenant of [a, b]) {
      const view = await stage.becomes(tenant, 'STARTED', null);
      expect(view).toMatchObject({ host_id: host.id, order_no: 1, ordered: true, version: engineOne, reason: null });
    }
    expect([...host.running.keys()].sort()).toEqual([a.id, b.id].sort());
  });

  it('leaves a tenant that is off alone, and says why', async () => {
    await stage.host();
    const off = await stage.tenant('off', { desired: 'off' });
    await stage.launch();
    expect(await stage.becomes(off, 'DISABLED')).toMatchObject({ code: 'stopped_by_user', order_no: 0 });
  });

  it('stops at once what is stopped, for as long as it is, and settles the message when it has ended', async () => {
    const host = await stage.host();
    const tenant = await stage.tenant('a');
    const launcher = await stage.launch();
    await stage.becomes(tenant, 'STARTED');
    host.letsGo = false;
    const id = await stage.send(tenant, 'stop');
    expect(await stage.becomes(tenant, 'DISABLED', 'stopping')).toMatchObject({ ending: true, ordered: false });
    const [slot] = await stage.control.db.rows(sql`select reason from slot where tenant_id = ${tenant.id}`);
    expect(slot).toEqual({ reason: 'ending' });
    const message = await stage.control.db.one(sql`select outcome, settled_at from message where id = ${id}`);
    expect(message).toEqual({ outcome: 'accepted', settled_at: null });
    host.letsGo = true;
    expect(await stage.outcome(id)).toMatchObject({ outcome: 'stopped' });
    await stage.becomes(tenant, 'DISABLED', 'stopped_by_user');
    expect(await stage.control.db.rows(sql`select 1 from slot where tenant_id = ${tenant.id}`)).toEqual([]);
    await launcher.stop();
    await stage.launch();
    await until('the next one is active', async () => {
      const [row] = await stage.control.db.rows<{ epoch: number }>(sql`select epoch from launcher_lease`);
      return row?.epoch === 2 || undefined;
    });
    expect(await stage.outcome(await stage.send(tenant, 'stop'))).toMatchObject({ outcome: 'stopped' });
    expect(await stage.view(tenant)).toMatchObject({ state: 'DISABLED', order_no: 1 });
  });
});
