/** `npm run screenshots`: a picture of every page, of an installation with a past, into screenshots/. */
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/screenshots/**/*.test.ts'],
    globalSetup: ['test/harness/global-setup.ts'],
    pool: 'forks',
    fileParallelism: false,
    testTimeout: 120_000,
    hookTimeout: 180_000,
  },
});
