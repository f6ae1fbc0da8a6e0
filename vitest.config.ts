/**
 * How suites run. `parallel`: unit tests beside their source, and all that can share a machine by a database per file.
 * `ends`: end-to-end suites, each with servers of its own.
 * `serial`: suites that kill processes, measure time or fill the machine, one file at a time, after all others.
 */
import { defineConfig } from 'vitest/config';
import { LongestFirst } from './test/longest-first.ts';

const endToEnd = [
  'test/e2e/**/*.test.ts',
  'test/chaos/crash-points.test.ts',
  'test/chaos/bus-points.test.ts',
  'test/chaos/flow-points.test.ts',
  'test/chaos/flow-tenant.test.ts',
  'test/chaos/bus-drop.test.ts',
  'test/chaos/tenant-walk.test.ts',
];
const serial = [
  ...['kill-tree', 'rivals', 'storm', 'tenant-storm', 'containers'].map((name) => `test/chaos/${name}.test.ts`),
  'test/e2e/smoke.test.ts',
];
/** Built engines are loaded as they are: to read them as sources takes seconds. */
const built = { deps: { external: [/\/dist\/engine\.js/] } };
/** Generous timeouts for a busy machine: a slow test must not fail, so a test that hangs is noticed late. */
const shared = { pool: 'forks', testTimeout: 60_000, hookTimeout: 120_000, server: built } as const;

export default defineConfig({
  test: {
    // more than the cores of a small machine: suites wait more than they compute
    maxWorkers: 3,
    sequence: { sequencer: LongestFirst },
    // here and not in a project, where it would run once for each
    globalSetup: ['test/harness/global-setup.ts'],
    projects: [
      {
        test: {
          ...shared,
          name: 'parallel',
          include: ['src/**/*.test.ts', 'ui/src/**/*.test.ts', 'bench/**/*.test.ts', 'test/**/*.test.ts'],
          // a picture of every page: `npm run screenshots`
          exclude: [...endToEnd, ...serial, 'test/screenshots/**', 'test/chaos/long/**'],
          sequence: { groupOrder: 0 },
        },
      },
      {
        test: {
          ...shared,
          name: 'ends',
          include: endToEnd,
          exclude: serial,
          sequence: { groupOrder: 1 },
        },
      },
      {
        test: {
          ...shared,
          name: 'serial',
          include: serial,
          fileParallelism: false,
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
});
