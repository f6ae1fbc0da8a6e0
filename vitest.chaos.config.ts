/** `npm run chaos`: the long suites of test/chaos/long and those that CI has no time for, one after the other. */
import { defineConfig } from 'vitest/config';
import { slow } from './test/slow.ts';

export default defineConfig({
  test: {
    include: ['test/chaos/long/**/*.test.ts', ...slow],
    globalSetup: ['test/harness/global-setup.ts'],
    pool: 'forks',
    server: { deps: { external: [/\/dist\/engine\.js/] } },
    fileParallelism: false,
    testTimeout: 3_600_000,
    hookTimeout: 60_000,
  },
});
