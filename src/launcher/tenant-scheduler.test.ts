import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { textWith } from '../../test/harness/expected.ts';
import { type Fleet, makeFleet, type TestTenant } from '../../test/harness/fleet.ts';
import { until } from '../../test/harness/until.ts';
import { engine } from '../engine/engine.ts';
import { silent } from '../kernel/log.ts';
import type { Service } from '../kernel/service.ts';
import { sql } from '../kernel/sql.ts';
import { onDatabase } from '../postgres/address.ts';
import { withClient } from '../postgres/databases.ts';
import { locks } from '../postgres/locks.ts';
import type { Loader } from './loader.ts';
import { tenantScheduler } from './tenant-scheduler.ts';

type Noted = { state: string; reason: string | null };
let fleet: Fleet;
let tenant: TestTenant;
let alive = 0;
let most = 0;
const running: Service[] = [];
beforeAll(async () => {
  fleet = await makeFleet(['a']);
  const [only] = fleet.tenants;
  if (only === undefined) throw new Error('no tenant');
  tenant = only;
});
afterEach(async () => {
  await Promise.all(running.splice(0).map((service) => service.stop()));
  most = 0;
});
afterAll(() => fleet.close());

/** A loader whose engine's scheduler says how many of it live. */
function counting(fault?: () => Error | undefined): Loader {
  return fleet.newLoader({
    engines: [
      {
        ...engine,
        scheduler: () => ({
          name: 'counted',
          async start() {
            const error = fault?.();
            if (error !== undefined) throw error;
            most = Math.max(most, ++alive);
          },
          async stop() {
            alive--;
          },
        }),
      },
    ],
  });
}

function make(loader: Loader): { service: Service; notes: Noted[] } {
  const notes: Noted[] = [];
  const service = tenantScheduler({
    row: tenant.row,
    loader,
    address: onDatabase(fleet.control.address, tenant.row.database),
    allowPooler: false,
    log: silent,
    note: async ({ state, reason }) => void notes.push({ state, reason }),
  });
  running.push(service);
  return { service, notes };
}
const states = (notes: readonly Noted[], state: string) =>
  until(state, () => notes.at(-1)?.state === state || undefined);
const cut = () =>
  fleet.control.db.exec(sql`
    select pg_terminate_backend(pid, 5000) from pg_stat_activity
     where application_name = ${`millrace scheduler ${tenant.row.name}`} and datname = ${tenant.row.database}`);

describe('a tenant’s scheduler', () => {
  it('starts, says so, and stops', async () => {
    const { service, notes } = make(counting());
    await service.start();
    await service.start();
    await states(notes, 'STARTED');
    expect([alive, most]).toEqual([1, 1]);
    await service.stop();
    await service.stop();
    expect(alive).toBe(0);
    expect(notes.at(-1)).toMatchObject({ state: 'ENABLED', reason: 'it was stopped' });
  });

  it('waits, with a reason, while another of the same tenant lives, and takes over when it ends (I5)', async () => {
    const [first, second] = [make(counting()), make(counting())];
    await first.service.start();
    await states(first.notes, 'STARTED');
    await second.service.start();
    await states(second.notes, 'ALLOCATED');
    expect(second.notes.at(-1)?.reason).toContain('another scheduler');
    expect(second.notes).toHaveLength(1);
    await first.service.stop();
    await states(second.notes, 'STARTED');
    expect(most).toBe(1);
  });

  it('stops when the connection of its lock is lost, says so, and starts over (I5)', async () => {
    const { service, notes } = make(counting());
    await service.start();
    await states(notes, 'STARTED');
    await cut();
    await until(
      'it has started again',
      () => notes.filter(({ state }) => state === 'STARTED').length === 2 || undefined,
    );
    expect(notes.map(({ state }) => state)).toEqual(['STARTED', 'ENABLED', 'STARTED']);
    expect(notes[1]?.reason).toContain('lost');
    expect([alive, most]).toEqual([1, 1]);
  });

  it('tries again after a failure, with the reason in words', async () => {
    let failures = 2;
    const { service, notes } = make(counting(() => (failures-- > 0 ? new Error('no luck') : undefined)));
    await service.start();
    await states(notes, 'STARTED');
    expect(notes[0]).toMatchObject({ state: 'ENABLED', reason: textWith('failed to start') });
    expect(alive).toBe(1);
  });

  it('names what is missing when the tenant cannot be opened', async () => {
    const { service, notes } = make(fleet.newLoader({ engines: [] }));
    await service.start();
    await until('it says why', () => notes.length > 0 || undefined);
    expect(notes[0]).toMatchObject({ state: 'ENABLED', reason: textWith('is at version') });
  });

  it('stops at once while it waits for the lock', async () => {
    const [first, second] = [make(counting()), make(counting())];
    await first.service.start();
    await states(first.notes, 'STARTED');
    await second.service.start();
    await states(second.notes, 'ALLOCATED');
    await second.service.stop();
    await until('one connection is left', async () => {
      const left = await fleet.control.db.rows(sql`
        select 1 from pg_stat_activity
         where application_name = ${`millrace scheduler ${tenant.row.name}`} and datname = ${tenant.row.database}`);
      return left.length === 1 || undefined;
    });
  });

  it('keeps a migration waiting as long as it runs, and lets it through when it has stopped (I6)', async () => {
    const loader = counting();
    const { service, notes } = make(loader);
    await service.start();
    await states(notes, 'STARTED');
    const address = onDatabase(fleet.control.address, tenant.row.database);
    const drained = (): Promise<boolean> =>
      withClient(address, async (client) => {
        const { rows } = await client.query<{ free: boolean }>('select pg_try_advisory_lock($1, $2) as free', [
          ...locks.drain,
        ]);
        return rows[0]?.free === true;
      });
    await fleet.loader.closeAll();
    await loader.closeAll();
    expect(await drained()).toBe(false);
    await service.stop();
    await loader.closeAll();
    await until('nobody holds it any more', async () => (await drained()) || undefined);
  });
});
