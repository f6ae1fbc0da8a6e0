/**
 * The broker on PostgreSQL: the `live` table is the queue, so an offer is only a wake-up for waiting claims; workers
 * report over HTTP, so no result ever comes through here; broadcasts ride on the gateways' answers to workers.
 */
import type { Broker } from '../contract/engine.ts';
import { all } from '../kernel/service.ts';
import type { WakeHub } from '../postgres/wake.ts';

/** What a broadcast is about on the hub: every gateway hears it, whatever the tenant. */
export const broadcastKind = 'invalidate';
/** A run is to be killed: the gateway that its worker waits at looks up which. */
export const signalKind = 'signals';

export function postgresBroker(hub: WakeHub): Broker {
  return {
    offer: (tenant, lanes) => hub.send(tenant.id, 'ready', lanes === undefined ? '' : spelled(lanes)),
    results: () => all('results', []),
    update: (tenant) => hub.send(tenant.id, 'triggers'),
    broadcast: (invalidation) => hub.send('workers', broadcastKind, JSON.stringify(invalidation)),
    cancel: (run) => hub.send('workers', signalKind, run.tenant),
  };
}

/** A wake-up carries few bytes: of many lanes none are named, which means any. */
const longestNames = 2_000;

function spelled(lanes: readonly string[]): string {
  const text = JSON.stringify(lanes);
  return Buffer.byteLength(text) > longestNames ? '' : text;
}

/** The lanes that an offer names; undefined: any. */
export function lanesOf(payload: string): readonly string[] | undefined {
  return payload === '' ? undefined : (JSON.parse(payload) as string[]);
}
