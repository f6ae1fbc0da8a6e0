/**
 * Decides which tenants may run tasks on the machines of workers themselves, as processes and functions. The setting can restrict
 * that to the tenant `default`, if the operators of other tenants are not trusted with those machines.
 */
import type { LocalTasks } from '../contract/local-tasks.ts';
import { defaultTenant } from '../contract/tenants.ts';
import { findKind } from './kinds.ts';

/** Whether a tenant may run work of this kind. A kind that this release does not know counts as local. */
export function mayRun(kind: string, tenant: string, setting: LocalTasks | undefined): boolean {
  return setting !== 'default' || tenant === defaultTenant || findKind(kind)?.isLocal === false;
}
