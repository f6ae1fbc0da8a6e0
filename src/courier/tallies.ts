/** Counts per tenant what this courier does, from the telemetry events of the bus. */
import { batchGivenUp, batchSent, errandsScrubbed } from '../bus/telemetry.ts';
import type { BusStanding } from '../contract/bus.ts';
import {
  type BusTally,
  type CourierTally,
  deliveryBounds,
  latencyBounds,
  maxShownSubscribers,
} from '../contract/courier-tally.ts';
import type { Telemetry } from '../kernel/telemetry.ts';

interface Histogram {
  buckets: number[];
  seconds: number;
}

interface Counts extends BusTally {
  delivered: number;
  deliveries: Record<string, number>;
  delivery: Histogram;
  latency: Histogram;
  dead_letters: number;
  scrubbed: number;
}

/** Kinds of answers per tenant. A status comes from an engine of any version, so their number is bounded. */
const maxStatuses = 50;

export class CourierTallies {
  readonly #byTenant = new Map<string, Counts>();
  readonly #standings = new Map<string, BusStanding & { readonly at: number }>();

  constructor(telemetry: Telemetry) {
    batchSent.on(telemetry, ({ tenant, status, events, ms, latencyMs }) => {
      const counts = this.#counts(tenant);
      if (latencyMs.length > 0 || status === '2xx') counts.delivered += events;
      const isNew = counts.deliveries[status] === undefined;
      const kind = isNew && Object.keys(counts.deliveries).length >= maxStatuses ? 'other' : status;
      counts.deliveries[kind] = (counts.deliveries[kind] ?? 0) + 1;
      observe(counts.delivery, deliveryBounds, ms / 1_000);
      for (const each of latencyMs) observe(counts.latency, latencyBounds, each / 1_000);
    });
    batchGivenUp.on(telemetry, ({ tenant }) => (this.#counts(tenant).dead_letters += 1));
    errandsScrubbed.on(telemetry, ({ tenant, errands }) => (this.#counts(tenant).scrubbed += errands));
  }

  noteStanding(tenant: string, standing: BusStanding, at: number): void {
    this.#standings.set(tenant, { ...standing, at });
  }

  /** Drops what is known about a tenant that has no subscribers any more, or is gone. */
  forgetStanding(tenant: string): void {
    this.#standings.delete(tenant);
  }

  get tally(): CourierTally {
    return {
      tenants: Object.fromEntries(this.#byTenant),
      standings: boundStandings(this.#standings),
    };
  }

  #counts(tenant: string): Counts {
    const known = this.#byTenant.get(tenant);
    if (known !== undefined) return known;
    const counts: Counts = {
      delivered: 0,
      deliveries: {},
      delivery: emptyHistogram(deliveryBounds),
      latency: emptyHistogram(latencyBounds),
      dead_letters: 0,
      scrubbed: 0,
    };
    this.#byTenant.set(tenant, counts);
    return counts;
  }
}

type Standings = CourierTally['standings'];

/** Keeps the subscribers with the most lag over all tenants. */
function boundStandings(standings: ReadonlyMap<string, Standings[string]>): Standings {
  const all = [...standings.values()].flatMap(({ subscribers }) => subscribers);
  if (all.length <= maxShownSubscribers) return Object.fromEntries(standings);
  const kept = new Set(all.toSorted((a, b) => b.queued - a.queued).slice(0, maxShownSubscribers));
  return Object.fromEntries(
    Array.from(standings, ([tenant, standing]) => [
      tenant,
      { ...standing, subscribers: standing.subscribers.filter((subscriber) => kept.has(subscriber)) },
    ]),
  );
}

function emptyHistogram(bounds: readonly number[]): Histogram {
  return { buckets: Array.from({ length: bounds.length + 1 }, () => 0), seconds: 0 };
}

function observe(histogram: Histogram, bounds: readonly number[], seconds: number): void {
  const found = bounds.findIndex((bound) => seconds <= bound);
  const bucket = found < 0 ? bounds.length : found;
  histogram.buckets[bucket] = (histogram.buckets[bucket] ?? 0) + 1;
  histogram.seconds += seconds;
}
