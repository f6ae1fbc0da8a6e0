/** What is done in a world, step by step: the log that the oracles read beside the journal. */
import type { Heartbeat, Poll } from '../../src/contract/engine.ts';
import type { ClaimedRun, Report } from '../../src/contract/wire.ts';
import type { JobPlan } from './documents.ts';

/** What a user, a worker or the gateway asked for; `statement` is one of a scheduler's own. */
export type Deed =
  | { readonly kind: 'statement' }
  | { readonly kind: 'claim'; readonly polls: readonly Poll[]; answer: readonly (readonly ClaimedRun[])[] }
  | { readonly kind: 'report'; readonly reports: readonly Report[] }
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

export interface Step {
  readonly number: number;
  /** What whoever did it took for now: a statement may have waited since. */
  readonly atMs: number;
  readonly deed: Deed;
  /** The product said no: nothing may have changed. */
  refused: boolean;
}

/** Names of tasks and triggers (`job/name`) by their ids. */
export type Names = ReadonlyMap<string, string>;

/** A token's place in the graph. */
export const placeOf = (task: string, instantMs: number): string => `${task}@${instantMs}`;

/** Says that something was not as it must be. */
export type Fault = (message: string) => void;

/** A task at an instant, for people. */
export function tell({ task, instantMs }: { readonly task: string; readonly instantMs: number }): string {
  return `${task} at ${clockTime(instantMs)}`;
}

export function clockTime(atMs: number): string {
  return new Date(atMs).toISOString().slice(11, 23);
}
