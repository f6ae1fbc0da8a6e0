/**
 * A job as the rest of Millrace knows it: a parsed, checked, normalised job document.
 *
 * Promises: every default is applied, durations are whole milliseconds, instants are milliseconds since the epoch,
 * every reference names its project and job in full, and all of it may be stored in PostgreSQL as it is (no NUL, no
 * lone surrogate, nothing outside the range of a timestamptz). Only `parse-job.ts` makes definitions.
 */
import type { RuntimeBlock } from '../contract/wire.ts';

/** Plain JSON, as a document holds it. */
type Json = string | number | boolean | null | readonly Json[] | JsonObject;
export interface JsonObject {
  readonly [key: string]: Json;
}

export const catchups = ['none', 'earliest', 'latest', 'random', 'last'] as const;
/** What happens to the instants that were missed while the trigger could not fire. */
type Catchup = (typeof catchups)[number];

export const overlaps = ['queue', 'skip', 'cancel_older'] as const;
/** What happens to an instant that becomes due while the job has its maximum of active instants. */
type Overlap = (typeof overlaps)[number];

export const retryCauses = ['failure', 'timeout', 'error'] as const;
/** The final states of an attempt that may be followed by another. */
type RetryCause = (typeof retryCauses)[number];

/** The value of `retention` that keeps everything. */
export const forever = 'forever';

/** The event of the parent for which the edge gives a token: a trigger fires, or a task ends in this way. */
export type EdgeKind = 'trigger' | 'success' | 'failure' | 'done';

export interface JobDefinition {
  /** The document's `uuid` in lower case; null: the job is known by project and name, and the server gives it an id. */
  readonly uuid: string | null;
  readonly project: string;
  readonly name: string;
  readonly description: string;
  /** null: the document has no such field. Then a new job is not paused, and an existing one keeps its state. */
  readonly paused: boolean | null;
  /** Default values of `{{params.x}}`. A run may be given others. */
  readonly params: JsonObject;
  /** null: no limit. */
  readonly maxActiveInstants: number | null;
  readonly overlap: Overlap;
  readonly retention: RetentionDefinition;
  readonly triggers: readonly TriggerDefinition[];
  readonly tasks: readonly TaskDefinition[];
  /** References to other jobs, for the server to resolve. `path` is their place in the document. */
  readonly foreignReferences: readonly ForeignReference[];
  /** The document as it was given. */
  readonly document: JsonObject;
}

/** null: forever. A missing field follows the installation's setting. Field names are those of the stored JSON. */
export interface RetentionDefinition {
  readonly age_ms?: number | null;
  readonly runs?: number | null;
}

/** Exactly one of `periodMs` and `cron` is not null. Has the shape of a `ScheduleSpec` (`schedule.ts`). */
export interface TriggerDefinition {
  readonly name: string;
  readonly startMs: number;
  /** Exclusive; null: no end. */
  readonly endMs: number | null;
  readonly periodMs: number | null;
  readonly cron: string | null;
  /** An IANA name; null: UTC. */
  readonly timezone: string | null;
  /** Fires this much after (before, if negative) its instant. */
  readonly offsetMs: number;
  readonly catchup: Catchup;
  /** Missed instants older than this are not caught up; null: all are. */
  readonly catchupWindowMs: number | null;
}

export interface TaskDefinition {
  readonly name: string;
  /** What to execute, as workers receive it. */
  readonly runtime: RuntimeBlock;
  /** Only workers that serve this queue (and the runtime) may take the task. */
  readonly queue: string;
  /** In document order: `depends`, `depends_failure`, `depends_done`. */
  readonly edges: readonly EdgeDefinition[];
  readonly threshold: number;
  readonly retry: RetryDefinition;
  readonly timeoutMs: number;
  /** Runs at a time; null: no limit. */
  readonly maxRunning: number | null;
  /** The pool whose places its runs take; null: none. */
  readonly pool: string | null;
}

export interface EdgeDefinition {
  readonly kind: EdgeKind;
  readonly parent: ParentReference;
  /** The child's instant is the parent's plus this. */
  readonly offsetMs: number;
}

export interface ParentReference {
  /** Whether the parent belongs to the same job. */
  readonly local: boolean;
  readonly project: string;
  readonly job: string;
  readonly kind: 'task' | 'trigger';
  readonly name: string;
}

interface ForeignReference {
  readonly path: string;
  readonly reference: ParentReference;
}

/** The wait before attempt n + 1 is min(cap, delay × factor^(n−1)), less up to `jitter` of it. */
export interface RetryDefinition {
  /** Attempts in all, the first included; 1: no retry. */
  readonly maxAttempts: number;
  readonly delayMs: number;
  readonly factor: number;
  readonly capMs: number | null;
  readonly jitter: number;
  readonly on: readonly RetryCause[];
}
