/**
 * The clients of the server. Only this file knows the tenant prefix: pages under `/t/{tenant}/…` call the API under
 * `/t/{tenant}`, all others the API of `default`. Keys and sessions belong to the installation and have no prefix.
 */
import type { TenantEndpoints } from '../../src/api/endpoints.ts';
import type { GatewayEndpoints } from '../../src/gateway/installation/endpoints.ts';
import { type CallAnswer, CallFailed, collectPages, makeClient, type Page } from '../../src/http/client.ts';

/** The prefix of every page and call of this tenant: empty, or `/t/{tenant}`. */
export const tenantBase = /^\/t\/[^/]+/.exec(location.pathname)?.[0] ?? '';

export const tenant = makeClient<TenantEndpoints>({ base: tenantBase });
export const gateway = makeClient<GatewayEndpoints>({ base: '' });

/** All items of a list that comes a page at a time. */
export async function listAll<T>(
  fetchPage: (cursor: string | undefined, limit: number) => Promise<Page<T>>,
): Promise<{ readonly items: readonly T[] }> {
  return { items: await collectPages(fetchPage) };
}

export type TenantAnswer<K extends keyof TenantEndpoints> = CallAnswer<TenantEndpoints[K]>;
export type GatewayAnswer<K extends keyof GatewayEndpoints> = CallAnswer<GatewayEndpoints[K]>;

/** The home page of a tenant, for a link that leaves the current one. */
export function homeOf(name: string | null): string {
  return name === null || name === 'default' ? '/' : `/t/${encodeURIComponent(name)}/`;
}

/** The name of the current tenant. */
export const tenantName = tenantBase === '' ? 'default' : decodeName(tenantBase.slice('/t/'.length));

function decodeName(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}

export function logUrl(run: string): string {
  return `${tenantBase}/api/runs/${encodeURIComponent(run)}/logs`;
}

export function statusOf(error: unknown): number | undefined {
  return error instanceof CallFailed ? error.status : undefined;
}

/** The server is up but its database is not; the error gives the reason and the time. */
export function isDatabaseFault(error: unknown): error is CallFailed {
  return error instanceof CallFailed && error.problem?.code === 'database_unavailable';
}
