/** Counts per tenant what the schedulers of this process do, from their telemetry events. */
import { eventsDropped, eventsPublished } from '../bus/telemetry.ts';
import { latenessBounds, type SchedulerTally } from '../contract/tally.ts';
import type { Telemetry } from '../kernel/telemetry.ts';
import { instantsCaughtUp, triggersFired, leasesLost, retried } from '../scheduler/telemetry.ts';

interface Counts {
  fired: number;
  caught_up: number;
  runs: number;
  retries: number;
  leases_lost: number;
  published: number;
  dropped: number;
  lateness: { buckets: number[]; seconds: number };
}

export class Tallies {
  readonly #byTenant = new Map<string, Counts>();

  constructor(telemetry: Telemetry) {
    triggersFired.on(telemetry, ({ tenant, triggers, runs, latenessMs }) => {
      const counts = this.#counts(tenant);
      counts.fired += triggers;
      counts.runs += runs;
      for (const ms of latenessMs) addLateness(counts.lateness, ms / 1000);
    });
    instantsCaughtUp.on(telemetry, ({ tenant, triggers, runs }) => {
      const counts = this.#counts(tenant);
      counts.caught_up += triggers;
      counts.runs += runs;
    });
    retried.on(telemetry, ({ tenant, runs }) => (this.#counts(tenant).retries += runs));
    leasesLost.on(telemetry, ({ tenant, runs }) => (this.#counts(tenant).leases_lost += runs));
    eventsPublished.on(telemetry, ({ tenant, events }) => (this.#counts(tenant).published += events));
    eventsDropped.on(telemetry, ({ tenant, events }) => (this.#counts(tenant).dropped += events));
  }

  of(tenant: string): SchedulerTally {
    return this.#counts(tenant);
  }

  /** Drops the counts of a scheduler that has ended: the next one counts from zero, here or in another host. */
  forget(tenant: string): void {
    this.#byTenant.delete(tenant);
  }

  #counts(tenant: string): Counts {
    const known = this.#byTenant.get(tenant);
    if (known !== undefined) return known;
    const buckets = Array.from({ length: latenessBounds.length + 1 }, () => 0);
    const schedules = { fired: 0, caught_up: 0, runs: 0, retries: 0, leases_lost: 0 };
    const counts = { ...schedules, published: 0, dropped: 0, lateness: { buckets, seconds: 0 } };
    this.#byTenant.set(tenant, counts);
    return counts;
  }
}

function addLateness(lateness: Counts['lateness'], seconds: number): void {
  const found = latenessBounds.findIndex((bound) => seconds <= bound);
  const bucket = found < 0 ? latenessBounds.length : found;
  lateness.buckets[bucket] = (lateness.buckets[bucket] ?? 0) + 1;
  lateness.seconds += seconds;
}
