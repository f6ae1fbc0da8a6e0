/** Counts per tenant what this conductor does, from its telemetry events. */
import { type ConductorTally, type FlowTally, timerLatenessBounds } from '../contract/conductor-tally.ts';
import type { Telemetry } from '../kernel/telemetry.ts';
import { functionsCalled, runsCommitted } from './telemetry.ts';

interface Counts extends FlowTally {
  commits: number;
  messages: number;
  lost: number;
  calls: number;
  lateness: { buckets: number[]; seconds: number };
}

export class ConductorTallies {
  readonly #byTenant = new Map<string, Counts>();

  constructor(telemetry: Telemetry) {
    runsCommitted.on(telemetry, ({ tenant, executions, runs, lost, latenessMs }) => {
      const counts = this.#counts(tenant);
      counts.commits += executions;
      counts.messages += runs;
      counts.lost += lost;
      for (const ms of latenessMs) observe(counts.lateness, ms / 1_000);
    });
    functionsCalled.on(telemetry, ({ tenant, calls }) => (this.#counts(tenant).calls += calls));
  }

  tally(executions: ConductorTally['executions']): ConductorTally {
    return { tenants: Object.fromEntries(this.#byTenant), executions };
  }

  #counts(tenant: string): Counts {
    const known = this.#byTenant.get(tenant);
    if (known !== undefined) return known;
    const buckets = Array.from({ length: timerLatenessBounds.length + 1 }, () => 0);
    const counts = { commits: 0, messages: 0, lost: 0, calls: 0, lateness: { buckets, seconds: 0 } };
    this.#byTenant.set(tenant, counts);
    return counts;
  }
}

function observe(histogram: Counts['lateness'], seconds: number): void {
  const found = timerLatenessBounds.findIndex((bound) => seconds <= bound);
  const bucket = found < 0 ? timerLatenessBounds.length : found;
  histogram.buckets[bucket] = (histogram.buckets[bucket] ?? 0) + 1;
  histogram.seconds += seconds;
}
