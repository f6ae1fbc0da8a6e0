/** The order of suites: those that take longest first, so that none of them is left running alone at the end. */
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Those of about twenty seconds and more, the longest first. */
const long = [
  'simulation/mutations',
  'simulation/simulation',
  'loader/loader-changes',
  'hosts/host-life',
  'launcher/transactions',
  'embedded/embedded',
  'embedded/root',
  'launcher/lease',
  'launcher/launcher-hosts',
  'tenants/drop',
  'e2e/workers',
  'e2e/upgrade-under-load',
  'chaos/crash-points',
  'chaos/tenant-walk',
  'e2e/ui-live',
  'e2e/standby',
  'e2e/launcher',
  'e2e/tenants',
  'e2e/ui-actions',
  'e2e/ui-views',
  'e2e/launcher-roles',
  'e2e/torture',
  'e2e/bench',
  'e2e/ui-tenants',
  'e2e/ui-runs',
  'e2e/access',
  'e2e/fuzz',
  'e2e/engine-versions',
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
