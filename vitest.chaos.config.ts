/** `npm run chaos`: the long suites of test/chaos/long, one after the other. CI runs their short versions. */
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/chaos/long/**/*.test.ts'],
    globalSetup: ['test/harness/global-setup.ts'],
    pool: 'forks',
    fileParallelism: false,
    testTimeout: 3_600_000,
    hookTimeout: 60_000,
  },
});
