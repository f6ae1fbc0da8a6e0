/** A tenant with 200 executions under way is stopped, started, upgraded in vain and upgraded. `npm run chaos` does it with 2,000. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { FlowTenant } from './flows/tenant.ts';

const atOnce = 200;
let tenant: FlowTenant;
beforeAll(async () => {
  tenant = await FlowTenant.start({ seed: 1, atOnce });
});
afterAll(() => tenant?.close());

it('a stopped tenant commits nothing and stores messages, and goes on when it is started', async () => {
  await tenant.busy(atOnce / 2);
  const { commits, stored } = await tenant.pause();
  expect(commits).toBe(0);
  expect(stored).toBeGreaterThan(0);
  await tenant.goOn();
}, 200_000);

it('executions go on after an upgrade that was rolled back, and after one that was not', async () => {
  await tenant.upgradeInVain();
  await tenant.goOn();
  await tenant.upgrade();
  await tenant.goOn();
}, 200_000);

it('every execution has ended as it would have, and no engine but that of the tenant has committed (I6)', async () => {
  expect(await tenant.finish()).toEqual([]);
}, 300_000);
