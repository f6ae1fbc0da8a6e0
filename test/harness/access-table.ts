/**
 * Who may call what, worked out from the tables of endpoints: the rows of docs/security.md, and what the end-to-end tests
 * expect. A new endpoint names its roles in `allow`, and gets a row here by that.
 */
import { tenantEndpoints } from '../../src/api/endpoints.ts';
import { gatewayEndpoints } from '../../src/gateway/installation/endpoints.ts';
import type { Endpoint } from '../../src/http/endpoint.ts';
import { newId } from '../../src/kernel/id.ts';

export const endpoints: readonly (readonly [string, Endpoint])[] = Object.entries({
  ...gatewayEndpoints,
  ...tenantEndpoints,
});

const callers = ['nobody', 'viewer', 'operator', 'worker', 'boundWorker', 'task'] as const;
type AccessCaller = (typeof callers)[number];

/** Workers of Waterwheel are listed for all tenants. */
const unboundOnly: ReadonlySet<string> = new Set(['POST /int-api/heartbeat']);

/** Yes; or only what is its own: a task's run, job and project, or what the runs name that workers of the key hold. */
type Stand = 'yes' | 'own' | '';

export function standOf(key: string, { allow }: Endpoint, caller: AccessCaller): Stand {
  if (allow.includes('anyone')) return 'yes';
  if (caller === 'nobody') return '';
  const role = caller === 'boundWorker' ? 'worker' : caller;
  if (!allow.includes(role)) return '';
  if (unboundOnly.has(key)) return caller === 'worker' ? 'yes' : '';
  return role === 'viewer' || role === 'operator' ? 'yes' : 'own';
}

/** The rows of the table in docs/security.md, without its head. */
export function accessRows(): string[] {
  const rows = endpoints.map(([key, endpoint]) => {
    const stands = callers.map((caller) => standOf(key, endpoint, caller));
    return `| \`${key}\` | ${stands.join(' | ')} |`.replaceAll(/ {2,}/g, ' ');
  });
  return rows.toSorted((a, b) => pathIn(a).localeCompare(pathIn(b), 'en') || a.localeCompare(b, 'en'));
}

function pathIn(row: string): string {
  return row.split('`')[1]?.split(' ')[1] ?? '';
}

/** Most endpoints decide before they read the body, so that none is needed. This one asks which tenant the key is of. */
export function bodyFor(key: string): object | undefined {
  if (key !== 'POST /int-api/heartbeat') return undefined;
  const work = { running_tasks: 0, total_tasks: 0 };
  return { uuid: newId(), addr: 'x', version: '1', last_seen_datetime: new Date(), ...work };
}
