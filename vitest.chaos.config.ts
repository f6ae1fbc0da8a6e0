/** `npm run chaos`: the long versions of suites that CI runs in a short form, one after the other. */
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/chaos/long/**/*.test.ts'],
    globalSetup: ['test/harness/global-setup.ts'],
    pool: 'forks',
    server: { deps: { external: [/\/dist\/engine\.js/] } },
    fileParallelism: false,
    testTimeout: 3_600_000,
    hookTimeout: 60_000,
  },
});
