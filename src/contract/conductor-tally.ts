/** Counters of a conductor since it started, by tenant. The conductor writes them, gateways show them. */
import type { HistogramTally } from './courier-tally.ts';

/** Upper bounds of the buckets of timer lateness, in seconds. A last bucket holds everything later. */
export const timerLatenessBounds = [0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 5, 60] as const;

/** What a conductor did for one tenant. */
export interface FlowTally {
  readonly commits: number;
  readonly messages: number;
  /** Runs that lost against another commit. */
  readonly lost: number;
  readonly calls: number;
  /** From the time at which a timer was due to the commit of its effect. */
  readonly lateness: HistogramTally;
}

export interface ConductorTally {
  readonly tenants: Readonly<Record<string, FlowTally>>;
  /** Executions in memory now, by tenant and what they do. */
  readonly executions: Readonly<Record<string, Readonly<Record<string, number>>>>;
}
