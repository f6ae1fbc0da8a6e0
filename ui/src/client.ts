/**
 * The way to the server, and the only file that knows of the tenant prefix: pages under `/t/{tenant}/…` call the API
 * under `/t/{tenant}`, all others that of `default`. Keys and sessions belong to the installation and have no prefix.
 */
import type { TenantEndpoints } from '../../src/api/endpoints.ts';
import type { GatewayEndpoints } from '../../src/gateway/installation/endpoints.ts';
import { type CallAnswer, CallFailed, collectPages, makeClient, type Page } from '../../src/http/client.ts';

/** What stands before every page and call of this tenant: nothing, or `/t/{tenant}`. */
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

/** The first page of a tenant, for a jump that leaves this one. */
export function homeOf(name: string | null): string {
  return name === null || name === 'default' ? '/' : `/t/${encodeURIComponent(name)}/`;
}

/** Whose pages these are. */
export const tenantName = tenantBase === '' ? 'default' : decoded(tenantBase.slice('/t/'.length));

function decoded(name: string): string {
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

/** The server answers and its database does not: the server says why, and since when. */
export function isDatabaseFault(error: unknown): error is CallFailed {
  return error instanceof CallFailed && error.problem?.code === 'database_unavailable';
}
