/**
 * Why a tenant's scheduler does not run: `{code, cause, data}`. Every state but STARTED has a reason.
 *
 * 1. The code decides what follows: when the launcher retries, what the API answers. `docs/states.md` lists the codes.
 * 2. Cause and data describe what happened. Advice is chosen by the cause.
 * 3. Sentences are made in `format-reason.ts` only, and no code reads one.
 *
 * A reason holds no times of retries: those are columns (`launch.retry_at`).
 *
 * In the control database a reason is three columns: `code`, `reason` (its sentence, which releases before 0.2.0 read and
 * write) and `why` (the whole reason, with that sentence). Those releases do not update `why`: if its sentence differs from
 * the column `reason`, `why` is out of date, and only the sentence is known.
 */
import { z } from 'zod';

export const reasonCodes = [
  'stopped_by_user',
  'starting',
  'stopping',
  'waiting_on_transaction',
  'no_slot',
  'no_engine',
  'not_installed',
  'unreachable',
  'not_connectable',
  'crashed',
  'failing',
  'gone',
] as const;

export type ReasonCode = (typeof reasonCodes)[number];

const nothing = z.object({});
const text = z.object({ text: z.string() });
const seconds = z.object({ seconds: z.number() });
const engine = z.object({ engine: z.string() });
const memory = z.object({ usedMib: z.number(), limitMib: z.number() });

/** A transaction that holds a lock. */
const holder = z.object({
  /** Null: a prepared transaction, named by `gid`. */
  pid: z.number().nullable(),
  gid: z.string().nullable(),
  application: z.string().nullable(),
  user: z.string().nullable(),
  since: z.string().nullable(),
});

/** What PostgreSQL knows about a part that makes no progress. */
const hang = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('lock'), holders: z.array(holder) }),
  z.object({ kind: z.literal('statement'), pid: z.number(), since: z.string() }),
  z.object({ kind: z.literal('no_statement') }),
  z.object({ kind: z.literal('no_answer') }),
  z.object({ kind: z.literal('unknown'), text: z.string() }),
]);

/** A part of a scheduler that does not work. `message`: its last error, null if an attempt is only taking too long. */
const fault = z.object({
  doing: z.string(),
  since: z.string(),
  message: z.string().nullable(),
  hang: hang.nullable(),
});

/** Each cause with the data that belongs to it. */
const causeShapes = {
  /** The code needs no further cause. */
  none: nothing,
  /** A message of a server, an engine, or a host of a release before 0.2.0. */
  error: text,
  /** A whole sentence that a launcher of a release before 0.2.0 wrote. */
  other: text,
  no_launcher: nothing,
  /** No host of its version has room for it. */
  no_room: engine,
  /** Processes that were started as its host ended before they registered. */
  hosts_end: z.object({ how: z.string(), times: z.number() }),
  wrong_host: z.object({ engine: z.string(), wanted: z.string() }),
  other_version: z.object({ version: z.string() }),
  being_changed: nothing,
  other_scheduler: z.object({ name: z.string().nullable(), pid: z.number().nullable() }),
  /** It has started, and counts as running when its parts have worked for this long. */
  proving: seconds,
  parts: z.object({ faults: z.array(fault) }),
  transaction: z.object({
    xid: z.string().nullable(),
    virtualTransaction: z.string().nullable(),
    pid: z.number().nullable(),
    isPrepared: z.boolean(),
  }),
  migration: nothing,
  locked_tables: nothing,
  position: z.object({ position: z.number() }),
  engine_missing: z.object({ version: z.string(), available: z.array(z.string()) }),
  engine_unusable: text,
  schema_unfit: z.object({ engine: z.string(), text: z.string() }),
  /** Parts are missing, most likely because a restore is under way. */
  being_restored: z.object({ engine: z.string(), text: z.string() }),
  connection_lost: text,
  no_answer: seconds,
  lock_connection_lost: nothing,
  missing_right: text,
  read_only: nothing,
  /** The table that records the version is not as Millrace creates it. */
  installation_table: text,
  template: nothing,
  unnameable: nothing,
  refuses_connections: nothing,
  host_ended: z.object({ how: z.string().nullable() }),
  host_silent: seconds,
  host_memory: memory,
  host_heap: memory,
  host_left: nothing,
  late_load: z.object({ engine: z.string(), seconds: z.number() }),
  late_start: seconds,
  /** An engine that reports no faults of parts did not answer a probe. */
  probe_unanswered: seconds,
  probe_failed: text,
  told_to_end: nothing,
  withdrawn: nothing,
  cut_off: nothing,
} as const;

export type CauseCode = keyof typeof causeShapes;
export type CauseData = { readonly [C in CauseCode]: z.output<(typeof causeShapes)[C]> };

/** With a type argument: a reason of these causes. */
export type Reason<C extends CauseCode = CauseCode> = {
  [K in C]: {
    readonly code: ReasonCode;
    readonly cause: K;
    readonly data: CauseData[K];
    /** Its scheduler did not stop, and its connections were cut. */
    readonly wasCutOff?: true;
  };
}[C];

export type HangFact = z.output<typeof hang>;
export type LockHolder = z.output<typeof holder>;
export type PartFact = z.output<typeof fault>;

export const reasons = {
  stoppedByUser: { code: 'stopped_by_user', cause: 'none', data: {} },
  starting: { code: 'starting', cause: 'none', data: {} },
  noLauncher: { code: 'starting', cause: 'no_launcher', data: {} },
  stopping: { code: 'stopping', cause: 'none', data: {} },
  toldToEnd: { code: 'stopping', cause: 'told_to_end', data: {} },
  withdrawn: { code: 'stopping', cause: 'withdrawn', data: {} },
  hostLeft: { code: 'stopping', cause: 'host_left', data: {} },
  beingChanged: { code: 'starting', cause: 'being_changed', data: {} },
  notInstalled: { code: 'not_installed', cause: 'none', data: {} },
  gone: { code: 'gone', cause: 'none', data: {} },
  isTemplate: { code: 'not_connectable', cause: 'template', data: {} },
  isUnnameable: { code: 'not_connectable', cause: 'unnameable', data: {} },
  refusesConnections: { code: 'not_connectable', cause: 'refuses_connections', data: {} },
  migration: { code: 'waiting_on_transaction', cause: 'migration', data: {} },
  lockedTables: { code: 'waiting_on_transaction', cause: 'locked_tables', data: {} },
  noSlot: (position: number): Reason => ({ code: 'no_slot', cause: 'position', data: { position } }),
  /** A transaction by its id alone. */
  waitingOn: (xid: string): Reason => reasons.waitingOnTransaction({ xid, virtualTransaction: null, pid: null }),
  waitingOnTransaction: (of: {
    readonly xid: string | null;
    readonly virtualTransaction: string | null;
    /** Null beside a virtual id: a prepared transaction. */
    readonly pid: number | null;
  }): Reason => {
    const { xid, virtualTransaction, pid } = of;
    const isPrepared = virtualTransaction !== null && pid === null;
    return { code: 'waiting_on_transaction', cause: 'transaction', data: { xid, virtualTransaction, pid, isPrepared } };
  },
  failing: (faults: readonly PartFact[]): Reason => ({
    code: 'failing',
    cause: 'parts',
    data: { faults: [...faults] },
  }),
  /** With a message of a server or an engine. */
  error: (code: ReasonCode, message: string): Reason => ({ code, cause: 'error', data: { text: boundText(message) } }),
} as const satisfies Record<string, Reason | ((...args: never[]) => Reason)>;

/** An engine that was not found, or cannot be used. */
export interface EngineFault {
  readonly detail: string;
  /** Set if there is no engine of this version. */
  readonly missing?: CauseData['engine_missing'];
}

export function noEngine({ detail, missing }: EngineFault): Reason {
  if (missing !== undefined) return { code: 'no_engine', cause: 'engine_missing', data: missing };
  return { code: 'no_engine', cause: 'engine_unusable', data: { text: boundText(detail) } };
}

const maxTextLength = 2_000;

/** Makes foreign text fit for PostgreSQL: bounded, without NUL and without lone surrogates. */
export function boundText(text: string): string {
  return text.replaceAll('\0', '').slice(0, maxTextLength).toWellFormed();
}

export function hasSameCause(one: Reason | null, other: Reason | null): boolean {
  return one?.code === other?.code && one?.cause === other?.cause;
}

/** Columns of a row that holds a reason. */
export interface ReasonColumns {
  readonly code: ReasonCode | null;
  readonly reason: string | null;
  readonly why: unknown;
}

const stored = z.object({
  code: z.enum(reasonCodes),
  cause: z.string(),
  data: z.unknown(),
  wasCutOff: z.literal(true).optional(),
  text: z.string(),
});

/** Reads the columns. `former`: the cause for a row that has only a sentence. Returns null if the row has no reason. */
export function readReason(row: ReasonColumns, former: 'other' | 'error' = 'other'): Reason | null {
  const { code, reason } = row;
  if (code === null && reason === null) return null;
  const { data: why } = stored.safeParse(row.why);
  const known = why?.text === reason && (why?.code === code || code === null) ? parseReason(why) : undefined;
  if (known !== undefined) return known;
  // such a sentence only repeats the code
  if (code !== null && (reason ?? code) === code) return { code, cause: 'none', data: {} };
  return { code: code ?? 'failing', cause: former, data: { text: reason ?? '' } };
}

/** Undefined: a cause of a newer release. */
function parseReason(why: z.output<typeof stored> | undefined): Reason | undefined {
  if (why === undefined || !Object.hasOwn(causeShapes, why.cause)) return undefined;
  const { success, data } = causeShapes[why.cause as CauseCode].safeParse(why.data);
  if (!success) return undefined;
  const cutOff = why.wasCutOff === true ? { wasCutOff: true } : {};
  return { code: why.code, cause: why.cause, data, ...cutOff } as Reason;
}

/** The value of the column `why`, beside the sentence that the column `reason` gets. */
export function storeReason(reason: Reason | null, sentence: string | null): string | null {
  return reason === null ? null : JSON.stringify({ ...reason, text: sentence });
}
