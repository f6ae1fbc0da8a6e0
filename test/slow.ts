/**
 * Suites that CI has no time for. They run with the long ones, by `npm run chaos`; `npx vitest run PATH --config
 * vitest.chaos.config.ts` runs one of them.
 */
export const slow: readonly string[] = [
  'test/chaos/crash-points.test.ts',
  'test/chaos/tenant-walk.test.ts',
  'test/e2e/launcher-roles.test.ts',
  'test/e2e/misbehaving.test.ts',
  'test/e2e/torture.test.ts',
  'test/simulation/mutations.test.ts',
];
