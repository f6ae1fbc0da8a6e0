/** The steps of a world: the log that the oracles read together with the journal. */
import type { Heartbeat, Poll } from '../../src/contract/engine.ts';
import type { ClaimedRun, Report } from '../../src/contract/wire.ts';
import type { JobPlan } from './documents.ts';

/** A request of a user, a worker or the gateway; `statement` is a statement of a scheduler. */
export type Deed =
  | { readonly kind: 'statement' }
  | ({ readonly kind: 'claim' } & HandOuts)
  | ({ readonly kind: 'report'; readonly reports: readonly Report[] } & HandOuts)
  | { readonly kind: 'renew'; readonly beats: readonly Heartbeat[] }
  | { readonly kind: 'apply'; readonly job: JobPlan }
  | { readonly kind: 'pause'; readonly job: string; readonly paused: boolean }
  | { readonly kind: 'activate'; readonly task: string; readonly instantMs: number }
  | { readonly kind: 'run'; readonly job: string; readonly instantMs: number }
  | { readonly kind: 'clear'; readonly job: string; readonly instantMs: number }
  | { readonly kind: 'cancel'; readonly run: string }
  | { readonly kind: 'pool'; readonly name: string; readonly places: number }
  | {
      readonly kind: 'backfill';
      readonly job: string;
      readonly firstMs: number;
      readonly lastMs: number;
      readonly missing: boolean;
      id: string;
    }
  | { readonly kind: 'cancel backfill'; readonly job: string; readonly id: string }
  | { readonly kind: 'delete'; readonly job: string };

/** The places that runs were asked for, and the runs that were handed out for them. */
export interface HandOuts {
  readonly polls: readonly Poll[];
  answer: readonly (readonly ClaimedRun[])[];
}

export interface Step {
  readonly number: number;
  /** The time that the actor took for now; a statement may have waited since. */
  readonly atMs: number;
  readonly deed: Deed;
  /** The product rejected the request, so nothing may have changed. */
  refused: boolean;
}

/** Names of tasks and triggers (`job/name`) by their ids. */
export type Names = ReadonlyMap<string, string>;

/** The key of a token. */
export const placeOf = (task: string, instantMs: number): string => `${task}@${instantMs}`;

/** Reports a fault. */
export type Fault = (message: string) => void;

/** Formats a task at an instant for messages. */
export function formatPlace({ task, instantMs }: { readonly task: string; readonly instantMs: number }): string {
  return `${task} at ${clockTime(instantMs)}`;
}

export function clockTime(atMs: number): string {
  return new Date(atMs).toISOString().slice(11, 23);
}
