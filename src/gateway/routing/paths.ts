/**
 * Classifies paths, based on the tables of endpoints.
 *
 * Machine paths are called by programs: below their first segment every unknown path is a 404. All other paths are pages of the
 * web interface. Tenant paths are passed on to the tenant's engine, which may be of another release and have more endpoints
 * below the same first segments.
 */
import { tenantEndpoints } from '../../api/endpoints.ts';
import { gatewayEndpoints } from '../installation/endpoints.ts';

/** The segment of the tenant's prefix, and a path of engines that the table of this release does not list. */
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

const busPath = /^(?:\/t\/[^/]+)?\/bus\//;

export function isBusPath(path: string): boolean {
  return busPath.test(path);
}
