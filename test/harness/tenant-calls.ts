/** Calls tenant endpoints as over HTTP, on the tenant life of a test; inserts rows that a launcher and hosts would write. */
import type { Caller } from '../../src/contract/roles.ts';
import { engineVersion } from '../../src/engine/engine.ts';
import { tenantEndpointsOfGateway } from '../../src/gateway/tenants/endpoints.ts';
import { tenantHandlers } from '../../src/gateway/tenants/handlers.ts';
import { makeRouter } from '../../src/http/router.ts';
import { newId } from '../../src/kernel/id.ts';
import { sql } from '../../src/kernel/sql.ts';
import { formatReason } from '../../src/control/format-reason.ts';
import { type Reason, storeReason } from '../../src/control/reasons.ts';
import type { TestLife } from './tenant-life.ts';

const root: Caller = { kind: 'key', role: 'root', tenantId: null, tenant: null, actor: 'key:root' };

export function viewerOf(tenantId: string): Caller {
  return { kind: 'key', role: 'viewer', tenantId, tenant: 'viewed', actor: 'key:v' };
}

const route = makeRouter(tenantEndpointsOfGateway, tenantHandlers, (error) => {
  throw error;
});

export interface EndpointAnswer {
  readonly status: number | undefined;
  readonly text: string;
  readonly json: Record<string, never>;
}

/** Sends `METHOD /path`, as root unless another caller is given. */
export async function callEndpoint(
  life: TestLife,
  call: string,
  body?: object,
  caller: Caller = root,
): Promise<EndpointAnswer> {
  const [method = '', path = ''] = call.split(' ');
  const sent =
    body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } };
  const response = await route(new Request(`http://here${path}`, { method, ...sent }), { life }, caller);
  const text = (await response?.text()) ?? '';
  return {
    status: response?.status,
    text,
    json: text.startsWith('{') ? (JSON.parse(text) as Record<string, never>) : {},
  };
}

export interface Entry {
  readonly state?: string;
  readonly reason?: Reason;
  readonly version?: string;
  readonly failures?: number;
  readonly retryAt?: Date;
  readonly hostId?: string;
  readonly waitOn?: string;
}

/** Inserts the launcher's row of a tenant. */
export async function insertLaunch({ control }: TestLife, tenantId: string, entry: Entry): Promise<void> {
  const {
    state = 'DISABLED',
    reason,
    version = null,
    failures = 0,
    retryAt = null,
    hostId = null,
    waitOn = null,
  } = entry;
  const sentence = reason === undefined ? null : formatReason(reason);
  await control.exec(sql`
    insert into launch (tenant_id, state, code, reason, why, version, failures, retry_at, host_id, ordered, wait_on, changed_at)
    values (${tenantId}, ${state}, ${reason?.code ?? null}, ${sentence}, ${storeReason(reason ?? null, sentence)}::jsonb,
            ${version}, ${failures}, ${retryAt}, ${hostId}, ${hostId !== null}, ${waitOn}, clock_timestamp())`);
}

export async function insertHost({ control }: TestLife): Promise<string> {
  const hostId = newId();
  await control.exec(sql`
    insert into host (id, machine, pid, engine, memory, started_at, beat_at)
    values (${hostId}, 'box7', 4711, ${engineVersion}, 1048576, clock_timestamp(), clock_timestamp())`);
  return hostId;
}

/** Runs the work while no launcher holds the lease. */
export async function withoutLauncher(life: TestLife, work: () => Promise<void>): Promise<void> {
  await life.launcher.stop();
  await life.control.exec(sql`update launcher_lease set renewed_at = clock_timestamp() - interval '6 seconds'`);
  try {
    await work();
  } finally {
    await life.launcher.start();
  }
}
