/** Decides which runs a poll may get: of which tenants, and in which lanes of a tenant. */
import { createHash } from 'node:crypto';
import { runtimeOf } from '../../contract/lane.ts';
import type { LocalTasks } from '../../contract/local-tasks.ts';
import { mayRun } from '../../runtimes/local-tasks.ts';
import type { ClaimRequest } from '../../contract/wire.ts';

/** `tenantId`: the only tenant that the worker's key serves; null: all. */
export interface Claim extends ClaimRequest {
  readonly tenantId?: string | null;
}

/** Whether a poll takes runs of a tenant now. */
export function tenantsOf({
  without,
  tenantId: only = null,
}: Pick<Claim, 'without' | 'tenantId'>): (tenantId: string) => boolean {
  const left = new Set(without);
  return (tenantId) => !left.has(tenantId) && (only === null || only === tenantId);
}

/** The lanes that this tenant may use, regardless of its documents. */
export function allowedLanes(lanes: readonly string[], tenant: string, setting: LocalTasks | undefined): string[] {
  return lanes.filter((lane) => mayRun(runtimeOf(lane), tenant, setting));
}

/** Longer names are hashed, because they are stored for each asked tenant. */
const maxNameLength = 200;

/** The same for the same lanes in any order. */
export function nameSetOf(lanes: readonly string[]): string {
  const name = JSON.stringify(lanes.toSorted());
  return name.length <= maxNameLength ? name : createHash('sha256').update(name).digest('base64');
}
