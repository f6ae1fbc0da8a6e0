/** Returns claimed runs unfinished, to be handed out again: as returned by their worker, or as lost. */
import { type Db, sql } from '../kernel/sql.ts';

export interface HandOut {
  readonly run: string;
  readonly lease: number;
  /** The worker that claims to hold the run; left out: any worker. */
  readonly worker?: string;
}

/** Owners of executions that a commit has told about the ends of their nodes' runs. An owner of null: any conductor. */
export interface Told {
  readonly owners: readonly (string | null)[] | null;
}

/** Returns the number of runs that were held under these leases. */
export function returnRuns(db: Db, runs: readonly HandOut[], at: Date): Promise<{ readonly returned: number } & Told> {
  return db.one(sql`
    select returned, owners
      from return_runs(
        ${runs.map((r) => r.run)}::uuid[], ${runs.map((r) => r.lease)}::integer[], ${at}::timestamptz,
        ${holdersOf(runs)}::uuid[])`);
}

/** A loss, reported by the worker: the process or container that executed the run is gone. */
export interface LostHandOut extends HandOut {
  readonly reason: string | null;
}

/** Returns how many runs are handed out again, and how many have ended because they were lost too often. */
export function loseRuns(
  db: Db,
  runs: readonly LostHandOut[],
  at: Date,
): Promise<{ readonly returned: number; readonly failed: number } & Told> {
  return db.one(sql`
    select returned, failed, owners
      from lose_runs(
        ${runs.map((r) => r.run)}::uuid[],
        ${runs.map((r) => r.lease)}::integer[],
        ${runs.map((r) => r.reason?.replaceAll('\0', '') ?? '')}::text[],
        ${at}::timestamptz,
        ${holdersOf(runs)}::uuid[])`);
}

/** The reporting workers as a parameter; null: any worker may hold the run. */
export function holdersOf(runs: readonly HandOut[]): (string | null)[] {
  return runs.map(({ worker }) => worker ?? null);
}
