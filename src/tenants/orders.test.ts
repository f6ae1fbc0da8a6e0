import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { everyone } from '../contract/channels.ts';
import { eventsOf, makeTestLife, messagesAbout, type TestLife } from '../../test/harness/tenant-life.ts';
import { newId } from '../kernel/id.ts';
import { sql } from '../kernel/sql.ts';
import { outcome as outcomeOf } from './life.ts';
import { giveOwnHost, limitSlots, order, slotLimit } from './orders.ts';
import { findLifeRow, insertTenant, setLeaving, setStaying } from './queries.ts';

const actor = 'key:ann';
let life: TestLife;
beforeAll(async () => {
  life = await makeTestLife();
});
afterAll(() => life.close());

let name: string;
beforeEach(async () => {
  name = life.name();
  await insertTenant(life.control, { id: newId(), name, database: name, ownHost: false, at: new Date() });
});
const desired = async () => (await findLifeRow(life.control, name))?.desired;

describe('order', () => {
  it.each([
    ['start', 'on', 'started', 'tenant.started'],
    ['stop', 'off', 'stopped', 'tenant.stopped'],
    ['restart', 'on', 'started', 'tenant.restarted'],
  ] as const)(
    'an order to %s sets the desired state to %s and returns at once',
    async (kind, wanted, outcome, event) => {
      const { tenantId, message } = await order(life, name, { kind, actor });
      expect(message).toMatchObject({ kind, sender: actor, xid: null });
      expect((await outcomeOf(life, tenantId, message.id, 30_000)).message).toMatchObject({ outcome });
      expect(await desired()).toBe(wanted);
      expect(await eventsOf(life, name)).toEqual([event]);
    },
  );

  it('an order to start or restart ends a stop', async () => {
    for (const kind of ['start', 'restart'] as const) {
      await order(life, name, { kind: 'stop', actor });
      await order(life, name, { kind, actor });
      expect(await desired()).toBe('on');
    }
  });

  it('an order to stop survives a drop that is refused later', async () => {
    const { id } = (await findLifeRow(life.control, name)) ?? { id: '' };
    await setLeaving(life.control, id);
    await order(life, name, { kind: 'stop', actor });
    expect(await findLifeRow(life.control, name)).toMatchObject({ desired: 'off', leaving: 'off' });
    expect(await setStaying(life.control, id)).toBe('off');
    await order(life, name, { kind: 'stop', actor });
    expect(await findLifeRow(life.control, name)).toMatchObject({ desired: 'off', leaving: null });
  });

  it('an order does not wait if no launcher is active, and stays queued', async () => {
    await life.launcher.stop();
    try {
      await life.control.exec(sql`update launcher_lease set renewed_at = clock_timestamp() - interval '6 seconds'`);
      const began = performance.now();
      const { message } = await order(life, name, { kind: 'stop', actor });
      expect(performance.now() - began).toBeLessThan(2_000);
      expect(message).toMatchObject({ outcome: null, acknowledgedAt: null });
      expect(await desired()).toBe('off');
    } finally {
      await life.launcher.start();
    }
  });

  it('an order notifies gateways, which read the tenant again and keep their connections', async () => {
    const { id } = (await findLifeRow(life.control, name)) ?? { id: '' };
    const heard: (boolean | undefined)[] = [];
    const stop = life.hub.on('tenant', id, (changed) => heard.push(changed));
    await order(life, name, { kind: 'stop', actor });
    stop();
    expect(heard).toEqual([undefined]);
  });

  it('an order for an unknown tenant is refused', async () => {
    await expect(order(life, 'nobody', { kind: 'stop', actor })).rejects.toMatchObject({ code: 'not_found' });
  });
});

describe('own host', () => {
  it('the second request for an own host changes nothing; the first moves a tenant that is on', async () => {
    await giveOwnHost(life, name, { ownHost: true, actor });
    await giveOwnHost(life, name, { ownHost: true, actor });
    expect(await findLifeRow(life.control, name)).toMatchObject({ ownHost: true });
    expect(await messagesAbout(life, name)).toEqual([{ kind: 'restart', cause: 'a host of its own', waits: false }]);
    expect(await eventsOf(life, name)).toEqual(['tenant.changed']);
  });

  it('an own host does not start a tenant that is off', async () => {
    await order(life, name, { kind: 'stop', actor });
    await giveOwnHost(life, name, { ownHost: true, actor });
    expect((await messagesAbout(life, name)).map(({ kind }) => kind)).toEqual(['stop']);
  });
});

it('the number of slots is the last one that was set, or the default; setting it wakes the launcher', async () => {
  expect(await slotLimit(life)).toBe(64);
  let woken = 0;
  const stop = life.hub.on('host_reports', everyone, () => woken++);
  await limitSlots(life, { limit: 3, actor });
  await limitSlots(life, { limit: 0, actor });
  stop();
  expect([await slotLimit(life), woken]).toEqual([0, 2]);
  const events = await life.control.rows(
    sql`select body::jsonb as body from event where type = 'slots.limited' order by seq`,
  );
  expect(events.map(({ body }) => body as unknown)).toMatchObject([
    { from: 64, to: 3 },
    { from: 3, to: 0 },
  ]);
});
