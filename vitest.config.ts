/**
 * How suites run. `parallel`: unit tests beside their source, and all that can share a machine by a database per file.
 * `serial`: suites that start whole servers or kill processes, one file at a time, after all others.
 */
import { defineConfig } from 'vitest/config';

const serial = ['test/e2e/**/*.test.ts', 'test/chaos/**/*.test.ts'];
const shared = { pool: 'forks', testTimeout: 30_000, hookTimeout: 60_000 } as const;

export default defineConfig({
  test: {
    maxWorkers: 2,
    // here and not in a project, where it would run once for each
    globalSetup: ['test/harness/global-setup.ts'],
    projects: [
      {
        test: {
          ...shared,
          name: 'parallel',
          include: ['src/**/*.test.ts', 'bench/**/*.test.ts', 'test/**/*.test.ts'],
          exclude: serial,
          sequence: { groupOrder: 0 },
        },
      },
      {
        test: {
          ...shared,
          name: 'serial',
          include: serial,
          // about ten minutes long: `npm run chaos`
          exclude: ['test/chaos/long/**'],
          fileParallelism: false,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});
