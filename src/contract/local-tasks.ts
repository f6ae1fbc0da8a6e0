/**
 * Which tenants may run tasks on the machines of workers themselves, as processes and functions. The setting keeps them
 * from tenants other than `default`, whose operators are not trusted with those machines.
 */
import type { RuntimeName } from './wire.ts';
import { defaultTenant } from './tenants.ts';

export type LocalTasks = 'all' | 'default';

const localRuntimes: ReadonlySet<string> = new Set<RuntimeName>(['process', 'function']);

/** Whether a tenant may run tasks of this runtime. */
export function mayRun(runtime: string, tenant: string, setting: LocalTasks | undefined): boolean {
  return setting !== 'default' || tenant === defaultTenant || !localRuntimes.has(runtime);
}
