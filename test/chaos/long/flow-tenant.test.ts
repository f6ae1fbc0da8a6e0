/** A tenant with 2,000 executions under way is stopped, started, upgraded in vain and upgraded. */
import { expect, it } from 'vitest';
import { FlowTenant } from '../flows/tenant.ts';
import { seed } from './seed.ts';

it(`2,000 executions survive a stop, a start and upgrades of their tenant (I6, I9), CHAOS_SEED=${seed}`, async () => {
  const tenant = await FlowTenant.start({ seed, atOnce: 2_000 });
  try {
    await tenant.busy(1_500);
    expect(await tenant.pause()).toMatchObject({ commits: 0 });
    await tenant.goOn();
    await tenant.upgradeInVain();
    await tenant.goOn();
    await tenant.upgrade();
    await tenant.goOn();
    expect(await tenant.pause()).toMatchObject({ commits: 0 });
    expect(await tenant.finish()).toEqual([]);
  } finally {
    await tenant.close();
  }
});
