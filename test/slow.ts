/**
 * Suites that CI has no time for. They run with the long ones, by `npm run chaos`; `npx vitest run PATH --config
 * vitest.chaos.config.ts` runs one of them.
 */
export const slow: readonly string[] = [
  'src/launcher/host-life.test.ts',
  'src/launcher/launcher-hosts.test.ts',
  'src/launcher/launcher-slots.test.ts',
  'src/launcher/life/drop.test.ts',
  'src/launcher/loader-changes.test.ts',
  'src/launcher/transactions.test.ts',
  'src/launcher/discovery-total.test.ts',
  'src/gateway/isolation.test.ts',
  'test/chaos/crash-points.test.ts',
  'test/chaos/tenant-storm.test.ts',
  'test/chaos/tenant-walk.test.ts',
  'test/e2e/launcher-roles.test.ts',
  'test/e2e/misbehaving.test.ts',
  'test/e2e/ui-tenants.test.ts',
];
