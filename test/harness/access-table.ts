/**
 * The table of who may call which endpoint, derived from the endpoint tables. It gives the rows of docs/security.md and the
 * expectations of the end-to-end tests. A new endpoint names its roles in `allow` and thereby gets a row.
 */
import { tenantEndpoints } from '../../src/api/endpoints.ts';
import { gatewayEndpoints } from '../../src/gateway/installation/endpoints.ts';
import type { Endpoint } from '../../src/http/endpoint.ts';
import { newId } from '../../src/kernel/id.ts';

export const endpoints: readonly (readonly [string, Endpoint])[] = Object.entries({
  ...gatewayEndpoints,
  ...tenantEndpoints,
});

const callers = [
  'nobody',
  'viewer',
  'operator',
  'client',
  'publisher',
  'subscriber',
  'worker',
  'boundWorker',
  'task',
] as const;
type AccessCaller = (typeof callers)[number];

/** Only keys without a tenant: workers of Waterwheel are listed for all tenants. */
const unboundOnly: ReadonlySet<string> = new Set(['POST /int-api/heartbeat']);

/** `own`: only a task's own run, job and project, or what the runs refer to that workers of the key hold. */
type Access = 'yes' | 'own' | '';

export function accessOf(key: string, { allow }: Endpoint, caller: AccessCaller): Access {
  if (allow.includes('anyone')) return 'yes';
  if (caller === 'nobody') return '';
  const role = caller === 'boundWorker' ? 'worker' : caller;
  if (!allow.includes(role)) return '';
  if (unboundOnly.has(key)) return caller === 'worker' ? 'yes' : '';
  return ownRoles.has(role) && !sharedWithClients(key) && !sharedWithTasks(key) ? 'own' : 'yes';
}

/** Roles that reach only what is their own. */
const ownRoles: ReadonlySet<string> = new Set(['client', 'publisher', 'subscriber', 'worker', 'task']);

/** Lists of the bus that every client may read. */
function sharedWithClients(key: string): boolean {
  return ['GET /bus/subscriptions', 'GET /bus/subscribers', 'GET /bus/events', 'GET /bus/topics'].includes(key);
}

/** A running task may launch executions and send signals to any of its tenant. */
function sharedWithTasks(key: string): boolean {
  return ['POST /api/executions', 'POST /api/executions/bulk', 'POST /api/executions/{id}/signals'].includes(key);
}

/** The rows of the table in docs/security.md, without its header. */
export function accessRows(): string[] {
  const rows = endpoints.map(([key, endpoint]) => {
    const accesses = callers.map((caller) => accessOf(key, endpoint, caller));
    return `| \`${key}\` | ${accesses.join(' | ')} |`.replaceAll(/ {2,}/g, ' ');
  });
  return rows.toSorted((a, b) => pathIn(a).localeCompare(pathIn(b), 'en') || a.localeCompare(b, 'en'));
}

function pathIn(row: string): string {
  return row.split('`')[1]?.split(' ')[1] ?? '';
}

/** Most endpoints check access before they read the body, so none is needed. A heartbeat's tenant is checked afterwards. */
export function bodyFor(key: string): object | undefined {
  if (key === 'PUT /api/runs/{id}/result') return {};
  if (key !== 'POST /int-api/heartbeat') return undefined;
  const work = { running_tasks: 0, total_tasks: 0 };
  return { uuid: newId(), addr: 'x', version: '1', last_seen_datetime: new Date(), ...work };
}
