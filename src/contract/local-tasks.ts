/**
 * Decides which tenants may run tasks directly on the machines of workers, as processes and functions. The setting
 * `default` denies this to all other tenants, whose operators are not trusted with those machines.
 */
import type { RuntimeName } from './wire.ts';
import { defaultTenant } from './tenants.ts';

export type LocalTasks = 'all' | 'default';

const localRuntimes: ReadonlySet<string> = new Set<RuntimeName>(['process', 'function']);

/** Whether a tenant may run tasks of this runtime. */
export function mayRun(runtime: string, tenant: string, setting: LocalTasks | undefined): boolean {
  return setting !== 'default' || tenant === defaultTenant || !localRuntimes.has(runtime);
}
