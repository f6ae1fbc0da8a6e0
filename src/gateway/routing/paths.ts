/**
 * Which paths belong to whom, derived from the tables of endpoints.
 *
 * Machine paths are those that programs call: below their first segment every unknown path is a 404. Everything else is a
 * page of the web interface. Tenant paths are passed on to the tenant's engine, which may be of another release, with more
 * endpoints below the same first segments.
 */
import { tenantEndpoints } from '../../api/endpoints.ts';
import { gatewayEndpoints } from '../installation/endpoints.ts';

/** The tenant's prefix, and a segment that engines serve which this release's table does not list. */
const prefixSegment = 't';
const furtherTenantPaths = ['/bus/'];

const pathsOf = (table: object): string[] => Object.keys(table).map((key) => key.slice(key.indexOf(' ') + 1));
const segmentOf = (path: string): string => path.split('/')[1] ?? '';

const tenantTable = [...pathsOf(tenantEndpoints), ...furtherTenantPaths];
const machineSegments = new Set([...pathsOf(gatewayEndpoints), ...tenantTable].map(segmentOf).concat(prefixSegment));
/** Segments with endpoints below them, and paths of a single segment. */
const tenantSegments = new Set(tenantTable.filter((path) => path.lastIndexOf('/') > 0).map(segmentOf));
const tenantPaths = new Set(tenantTable.filter((path) => path.lastIndexOf('/') === 0));

export function isMachinePath(path: string): boolean {
  return machineSegments.has(segmentOf(path));
}

export function isTenantPath(path: string): boolean {
  return tenantPaths.has(path) || (path.indexOf('/', 1) > 0 && tenantSegments.has(segmentOf(path)));
}
