/**
 * Queries of tenants, launchers and hosts. Their data is in the control database, which sends no live changes: pages about it
 * poll while they are visible, more often while something is under way. Pages of a tenant do not poll.
 */
import { useIsMutating, useQuery } from '@tanstack/react-query';
import { type GatewayAnswer, gateway, isDatabaseFault, listAll, statusOf } from '../client.ts';
import { keys } from '../queries.ts';
import { isUnderWay, toneOf } from './standing.ts';

export type Slots = Awaited<ReturnType<typeof fetchSlots>>;
export type Slot = Slots['items'][number];
export type Engine = GatewayAnswer<'GET /api/engines'>['items'][number];
export type Launcher = Awaited<ReturnType<typeof fetchLauncher>>;
export type Process = Launcher['standing_by'][number];
export type TenantWhy = GatewayAnswer<'GET /api/explain/tenant/{name}'>;

const calmMs = 3_000;
/** Polled, because a full disk or a frozen database sends no live change. */
const quietMs = 60_000;
const busyMs = 1_000;

const fetchTenants = (signal: AbortSignal) =>
  listAll((cursor, limit) => gateway('GET /api/tenants', { query: { cursor, limit }, signal }));

/** Read once; a digest has it read again each minute. */
export function useTenantList(enabled = true) {
  return useQuery({
    queryKey: keys.tenantList,
    queryFn: ({ signal }) => fetchTenants(signal),
    enabled,
  });
}

export function useTenants() {
  return useQuery({
    queryKey: keys.tenantList,
    queryFn: ({ signal }) => fetchTenants(signal),
    refetchInterval: ({ state: { data } }) => (data?.items.some(isUnderWay) === true ? busyMs : calmMs),
  });
}

/** Disabled while the tenant is being renamed, because a read under the old name would result in 404. */
function useIsBeingRenamed(name: string): boolean {
  return useIsMutating({ mutationKey: keys.tenant(name) }) > 0;
}

export function useTenant(name: string) {
  const isBeingRenamed = useIsBeingRenamed(name);
  return useQuery({
    queryKey: keys.tenant(name),
    queryFn: ({ signal }) => gateway('GET /api/tenants/{name}', { params: { name }, signal }),
    refetchInterval: ({ state: { data, error } }) => {
      if (isBeingRenamed || statusOf(error) === 404) return false;
      return data !== undefined && isUnderWay(data) ? busyMs : calmMs;
    },
  });
}

export function useMessages(name: string, limit: number) {
  const isBeingRenamed = useIsBeingRenamed(name);
  return useQuery({
    queryKey: keys.tenant(name, 'messages', limit),
    queryFn: ({ signal }) =>
      gateway('GET /api/tenants/{name}/messages', { params: { name }, query: { limit }, signal }),
    refetchInterval: ({ state: { data } }) => {
      if (isBeingRenamed) return false;
      return data?.items.some(({ settled_at }) => settled_at === null) === true ? busyMs : calmMs;
    },
  });
}

/** A running tenant is polled rarely, because its own stream reports when its scheduler ends. `watched`: polled as often as others. */
export function useTenantWhy(name: string, { watched = false }: { readonly watched?: boolean } = {}) {
  const isBeingRenamed = useIsBeingRenamed(name);
  return useQuery({
    queryKey: keys.tenant(name, 'why'),
    queryFn: ({ signal }) => gateway('GET /api/explain/tenant/{name}', { params: { name }, signal }),
    refetchInterval: ({ state: { data, error } }) => {
      if (isDatabaseFault(error)) return calmMs;
      if (isBeingRenamed || data === undefined) return false;
      return !watched && toneOf(data) === 'well' ? quietMs : calmMs;
    },
  });
}

async function fetchSlots(signal: AbortSignal) {
  let counts = { limit: 0, taken: 0 };
  const { items } = await listAll(async (cursor, pageLimit) => {
    const answer = await gateway('GET /api/slots', { query: { cursor, limit: pageLimit }, signal });
    counts = { limit: answer.limit, taken: answer.taken };
    return answer;
  });
  return { ...counts, items };
}

export function useSlots() {
  return useQuery({
    queryKey: [...keys.tenants, 'slots'],
    queryFn: ({ signal }) => fetchSlots(signal),
    refetchInterval: calmMs,
  });
}

/** They change rarely, only when an engine is added or removed. */
export function useEngines() {
  return useQuery({
    queryKey: [...keys.tenants, 'engines'],
    queryFn: ({ signal }) => gateway('GET /api/engines', { signal }),
    refetchInterval: 5 * calmMs,
  });
}

/** With all hosts. */
async function fetchLauncher(signal: AbortSignal) {
  let launchers: Pick<GatewayAnswer<'GET /api/launcher'>, 'active' | 'standing_by'> = { active: null, standing_by: [] };
  const { items: hosts } = await listAll(async (cursor, limit) => {
    const { hosts: items, next, ...rest } = await gateway('GET /api/launcher', { query: { cursor, limit }, signal });
    launchers = rest;
    return { items, next };
  });
  return { ...launchers, hosts };
}

export function useLauncher() {
  return useQuery({
    queryKey: [...keys.tenants, 'launcher'],
    queryFn: ({ signal }) => fetchLauncher(signal),
    refetchInterval: calmMs,
  });
}
