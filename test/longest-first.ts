/** The order of suites: those that take longest first, so that none of them is left running alone at the end. */
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Longer than twenty seconds each. */
const long = [
  'simulation/mutations',
  'e2e/workers',
  'e2e/ui-live',
  'postgres/embedded',
  'e2e/launcher',
  'e2e/tenants',
  'simulation/simulation',
  'e2e/ui-actions',
  'e2e/ui-views',
  'e2e/bench',
  'e2e/ui-tenants',
  'e2e/ui-runs',
  'e2e/access',
  'postgres/embedded-root',
  'launcher/loader-changes',
  'api/backfills',
  'e2e/fuzz',
  'e2e/engine-versions',
  'launcher/lease',
];

export class LongestFirst extends BaseSequencer {
  override async sort(suites: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification): number => {
      const at = long.findIndex((name) => moduleId.endsWith(`/${name}.test.ts`));
      return at === -1 ? long.length : at;
    };
    return (await super.sort(suites)).toSorted((a, b) => rank(a) - rank(b));
  }
}
