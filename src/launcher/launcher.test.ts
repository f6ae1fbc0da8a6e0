import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { engineOne, installBareTenant, makeStage, type Stage } from '../../test/harness/launching.ts';
import { until } from '../../test/harness/until.ts';
import { append, tenantTopic } from '../events/append.ts';
import { silent } from '../kernel/log.ts';
import { pause } from '../kernel/service.ts';
import { sql } from '../kernel/sql.ts';

let stage: Stage;
beforeEach(async () => {
  stage = await makeStage();
});
afterEach(() => stage.close());

describe('launcher', () => {
  it('a launcher without its database logs that once, not every second', async () => {
    const logged: string[] = [];
    const warn = ({ doing }: { doing: string }): void => {
      logged.push(doing);
    };
    const controlAddress = { url: 'postgres://x@127.0.0.1:1/x', database: 'x' };
    await stage.launch({ controlAddress, log: { ...silent, warn } });
    await pause(1_300);
    expect(logged).toEqual(['renewing its lease']);
  });

  it('a launcher has every wanted tenant run by a host of its version', async () => {
    const host = await stage.host();
    const [a, b] = [await stage.tenant('a'), await stage.tenant('b')];
    await stage.launch();
    for (const tenant of [a, b]) {
      const view = await stage.becomes(tenant, 'STARTED', null);
      expect(view).toMatchObject({ host_id: host.id, order_no: 1, ordered: true, version: engineOne, reason: null });
    }
    expect([...host.running.keys()].sort()).toEqual([a.id, b.id].sort());
  });

  it('a launcher writes one event for a version that no command has recorded, and none for others', async () => {
    const { db } = stage.control;
    await stage.host();
    const [told, plain] = [await stage.tenant('told'), await stage.tenant('plain', { installed: null })];
    const created = { type: 'tenant.created', subject: told.id, body: { name: 'told', version: engineOne } };
    await db.transaction((tx) => append(tx, tenantTopic, [created], { actor: 'key:ann', at: new Date() }));
    const launcher = await stage.launch();
    await stage.becomes(told, 'STARTED');
    await stage.becomes(plain, 'DISABLED', 'not_installed');
    await installBareTenant(plain.address, engineOne);
    await stage.send(plain, 'restart');
    await stage.becomes(plain, 'STARTED');
    await launcher.stop();
    await stage.launch();
    expect(await stage.outcome(await stage.send(plain, 'restart'))).toMatchObject({ outcome: 'started' });
    const changes = await db.rows(sql`
      select subject, actor, body::jsonb as body from event where type = 'tenant.version_changed'`);
    expect(changes).toEqual([{ subject: plain.id, actor: 'sql', body: { name: 'plain', from: null, to: engineOne } }]);
  });

  it('a launcher does not start a tenant that is off, and records why', async () => {
    await stage.host();
    const off = await stage.tenant('off', { desired: 'off' });
    await stage.launch();
    expect(await stage.becomes(off, 'DISABLED')).toMatchObject({ code: 'stopped_by_user', order_no: 0 });
  });

  it('a launcher stops a tenant at once, for good, and settles the message when its scheduler has ended', async () => {
    const host = await stage.host();
    const tenant = await stage.tenant('a');
    const launcher = await stage.launch();
    await stage.becomes(tenant, 'STARTED');
    host.letsGo = false;
    const id = await stage.send(tenant, 'stop');
    expect(await stage.becomes(tenant, 'DISABLED', 'stopping')).toMatchObject({ ending: true, ordered: false });
    const [slot] = await stage.control.db.rows(sql`select reason from slot where tenant_id = ${tenant.id}`);
    expect(slot).toEqual({ reason: 'ending' });
    // perhaps a turn later, because the desired state may have been read first
    const message = await until('the message was read', async () => {
      const [row] = await stage.control.db.rows<{ outcome: string | null }>(sql`
        select outcome, settled_at from message where id = ${id}`);
      return row?.outcome === null ? undefined : row;
    });
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
