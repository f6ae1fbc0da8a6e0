/**
 * The messages between workers and gateways under `/internal`. Every message is a batch, and every item names tenant, run and
 * lease (I3, I4). Tenants are named by id, because another tenant may have the name tomorrow. Both ends parse what they
 * receive, so that neither can harm the other (I11).
 */
import { z } from 'zod';

const id = z.guid();
/** The range of an integer column. */
const int4 = z.int().max(2 ** 31 - 1);

/**
 * A kind of work: `process`, `docker` and so on. `runtimes/kinds.ts` lists those of this release; a worker or an engine of
 * another release may know others.
 */
const workKind = z.string().regex(/^[a-z][a-z0-9-]{0,39}$/);
/** Kinds that one worker takes. */
const maxRuntimes = 10;

/** A run that a worker holds. The lease number identifies one hand-out of the run. */
export const heldRun = z.object({ tenant: id, run: id, lease: int4.min(1) });
export type HeldRun = z.infer<typeof heldRun>;

/** How far the clock of a worker may be ahead of the server's: 1 day. A later incarnation would outlast every restart. */
export const maxIncarnationAheadMs = 86_400_000;

/** A worker's identity: the id stays over restarts under `up`, the incarnation (start time) does not. */
const workerIdentity = { worker: id, incarnation: z.int().min(0) };

/** A changed object that a worker may have cached. */
export const invalidation = z.object({ tenant: id, kind: z.enum(['project', 'task']), id });
export type Invalidation = z.infer<typeof invalidation>;

/** Part of every answer to a worker: runs to kill, runs that it no longer holds, caches to drop. */
const signals = z.object({
  cancel: z.array(heldRun),
  lost: z.array(heldRun),
  invalidate: z.array(invalidation),
  /** Each gateway counts its invalidations, from 0 when it starts. The epoch names the gateway's life, `newest` is its count. */
  epoch: z.string().min(1).max(100),
  newest: z.int().min(0),
});
export type Signals = z.infer<typeof signals>;

/** An object of few fields. They are counted first, because checking each field of a very large record takes seconds. */
function boundedRecord(max: number, what: string) {
  return z
    .looseObject({})
    .refine((fields) => Object.keys(fields).length <= max, { error: `more than ${max} ${what}`, abort: true });
}

/** For each epoch, the number of the last invalidation that the worker has received, so that each is sent once. */
const seen = boundedRecord(100, 'epochs').pipe(z.record(z.string().max(100), z.int().min(0)));
export type Seen = z.infer<typeof seen>;

/** A failure of one tenant. It concerns all items of the tenant in the message, or only the run or runs that it names. */
const failure = z.object({
  tenant: id,
  run: id.optional(),
  runs: z.array(id).optional(),
  code: z.string(),
  detail: z.string(),
});
export type Failure = z.infer<typeof failure>;

/** The number of tenants that a poll may leave out. */
export const maxWithout = 1_000;

/**
 * The messages that a worker of this release understands, as a number. 1: runs of tasks only. 2: also runs of nodes, and runs
 * in the answer to a report.
 */
export const wireNumber = 2;

/** Which runs a worker takes. */
const served = {
  /** The kinds of work that it takes. */
  runtimes: z.array(workKind).max(maxRuntimes),
  queues: z.array(z.string().min(1).max(200)).min(1).max(100),
  /** The `wireNumber` of its release; left out: 1. */
  wire: z.int().min(1).optional(),
};
/** How many runs a worker takes, and which. */
const places = z.object({ free: z.int().min(0).max(10_000), ...served });
export type Places = z.infer<typeof places>;

export const claimRequest = z.object({
  ...workerIdentity,
  /** With 0 free places a poll waits for signals only. */
  ...places.shape,
  wait_ms: z.int().min(0).max(60_000),
  /** Tenants whose runs the worker does not take now, because too many of their reports are unsent. */
  without: z.array(id).max(maxWithout).optional(),
  seen,
});
export type ClaimRequest = z.infer<typeof claimRequest>;

/** How a run can end. */
export const finalStates = ['success', 'failure', 'timeout', 'error', 'cancelled'] as const;

/**
 * Not final: the run is handed out again. `returned`: the worker gives it back unfinished. `lost`: what executed it is gone
 * (a restarted daemon, an evicted pod); the third loss of a run ends it in `error`.
 */
const reportStates = [...finalStates, 'returned', 'lost'] as const;
export type ReportState = (typeof reportStates)[number];

/** Bytes of the result of a run. As a string of JSON it takes at most twice as many, so that a report fits into a request. */
export const maxResultBytes = 256 * 1024;

const report = z.object({
  ...heldRun.shape,
  state: z.enum(reportStates),
  /** Explains the final state to users. */
  reason: z.string().max(4_000).nullable(),
  exit_code: int4.min(-(2 ** 31)).nullable(),
  started_at: z.iso.datetime().nullable(),
  /**
   * The task's result as JSON text, so that no process on the way serializes it again. Text that is not JSON becomes the reason.
   */
  result: z.string().max(maxResultBytes).optional(),
});
export type Report = z.infer<typeof report>;

export const reportRequest = z.object({
  ...workerIdentity,
  reports: z.array(report).max(10_000),
  /**
   * Places that the worker keeps free for runs in the answer, by lanes. Its polls must not ask for the same places meanwhile.
   */
  places: z.array(places).max(10).optional(),
});
export type ReportRequest = z.infer<typeof reportRequest>;
/**
 * The number of runs that a worker may hold. A heartbeat lists all of them, about 110 bytes of JSON each. A worker has at most
 * 10,000 places. A gateway needs 2 to 4 µs for each run of a heartbeat.
 */
export const maxHolds = 25_000;
export const heartbeatBytes = 128 * maxHolds;

export const heartbeatRequest = z.object({
  ...workerIdentity,
  name: z.string().max(200),
  addr: z.string().max(300),
  version: z.string().max(100),
  /** The number of runs that it executes at once; 0 while it is leaving. */
  places: int4.min(0),
  /** The kinds of work that it takes now. */
  runtimes: z.array(workKind).max(maxRuntimes),
  /** The kinds that it would take if what executes them were available, and why it is not. */
  unavailable: boundedRecord(maxRuntimes, 'kinds')
    .pipe(z.record(workKind, z.string().max(1_000)))
    .optional(),
  queues: z.array(z.string().min(1).max(200)).max(100),
  holds: z.array(heldRun).max(maxHolds),
  /** The number of taken places, since some held runs take none. Left out: every held run takes one. */
  taken: int4.min(0).optional(),
  seen,
});
export type HeartbeatRequest = z.infer<typeof heartbeatRequest>;
export const heartbeatAnswer = z.object({
  ...signals.shape,
  /** The time until the next heartbeat; left out: the worker decides. */
  beat_ms: z.int().min(100).max(60_000).optional(),
});
export type HeartbeatAnswer = z.infer<typeof heartbeatAnswer>;

/** A piece of a task's output. `number` counts from 0 per (run, lease) over both streams, so order is kept. */
const logChunk = z.object({
  ...heldRun.shape,
  number: int4.min(0),
  stream: z.enum(['out', 'err']),
  at: z.iso.datetime(),
  data: z.base64(),
});
export type LogChunk = z.infer<typeof logChunk>;
export const logsRequest = z.object({ ...workerIdentity, chunks: z.array(logChunk).max(1_000) });
export type LogsRequest = z.infer<typeof logsRequest>;
export const logsAnswer = z.object({ accepted: z.int(), failed: z.array(failure) });

const definitionKey = z.object({ tenant: id, task: id, version: int4.min(1) });
export type DefinitionKey = z.infer<typeof definitionKey>;
/** A worker of an older release sends no identity. The answer asks its operator to upgrade it. */
const identityIfKnown = { worker: id.optional(), incarnation: z.int().min(0).optional() };
export const definitionsRequest = z.object({ ...identityIfKnown, items: z.array(definitionKey).max(1_000) });
export type DefinitionsRequest = z.infer<typeof definitionsRequest>;

const named = z.object({ id, name: z.string() });
/** Variables: each is the text itself, or the name of a stash entry that is read at the start of the run. */
const environment = z.record(z.string(), z.union([z.string(), z.object({ stash: z.string() })]));
export type Environment = z.infer<typeof environment>;

/**
 * The work to execute. Its members differ by kind, and only the kind's own `block.ts` knows them. A worker that cannot read one
 * block can still read the other definitions of the same answer.
 */
const runtimeBlock = z.looseObject({ kind: workKind, env: environment.optional() });
export type RuntimeBlock = z.infer<typeof runtimeBlock>;

/** Everything that a worker needs to execute a task. Immutable per (task, version), so that workers cache it. */
const taskDefinition = z.object({
  ...definitionKey.shape,
  name: z.string(),
  job: named,
  project: named,
  timeout_ms: z.int().min(1),
  /** Defaults for params that the run itself does not set. */
  params: z.record(z.string(), z.unknown()),
  runtime: runtimeBlock,
});
export type TaskDefinition = z.infer<typeof taskDefinition>;
/** The code of a failure: definitions of this tenant that are not in the answer did not fit. Ask for them again. */
export const answerFull = 'answer_full';
/** Definitions that do not exist (any more) are left out of the answer; those of tenants that failed may exist. */
export const definitionsAnswer = z.object({ definitions: z.array(taskDefinition), failed: z.array(failure) });

/** The stash values that a run's environment names. Project entries override global ones. */
export const secretsRequest = z.object({
  ...identityIfKnown,
  ...heldRun.shape,
  names: z.array(z.string().max(200)).max(1_000),
});
export type SecretsRequest = z.infer<typeof secretsRequest>;
export const secretsAnswer = z.object({ values: z.record(z.string(), z.base64()) });

/** The members that runs of tasks and of nodes share. */
const handOut = {
  ...heldRun.shape,
  /** The present name of the tenant, for the task's environment and its address of the API. */
  tenant_name: z.string(),
  engine: z.string(),
  attempt: z.int(),
  priority: z.enum(['backfill', 'low', 'normal', 'high']),
  params: z.record(z.string(), z.unknown()),
  /** The task's bearer credential, valid for this lease. Empty if the poll asked only for runs of the kind `none`. */
  credential: z.string(),
};

/** A node of an execution, with everything that a worker needs, so that it fetches no definition. */
const nodeWork = z.object({
  execution: id,
  /** Its id within the execution. */
  id: z.string(),
  name: z.string(),
  timeout_ms: z.int().min(1),
  project: named.nullable(),
  runtime: taskDefinition.shape.runtime,
});
export type NodeWork = z.infer<typeof nodeWork>;

const absent = z.never().optional();

/** A run is about a task at an instant, or about a node of an execution. Only workers of wire 2 receive the latter. */
const claimedRun = z.union([
  z.object({ ...handOut, task: id, version: z.int(), instant: z.iso.datetime(), node: absent }),
  z.object({ ...handOut, task: absent, version: absent, instant: absent, node: nodeWork }),
]);
export type ClaimedRun = z.infer<typeof claimedRun>;
export type TaskRun = Exclude<ClaimedRun, { node: NodeWork }>;

export const claimAnswer = z.object({ runs: z.array(claimedRun), ...signals.shape });
export type ClaimAnswer = z.infer<typeof claimAnswer>;

/**
 * A late or repeated report is acknowledged, too (I3). The worker sends failed reports again: all reports of the tenant, or
 * those of the listed runs. A failure with a single `run` is a rejection, which would be repeated.
 */
export const reportAnswer = z.object({
  accepted: z.int(),
  failed: z.array(failure),
  /** Runs for the places that the request named, a list for each, as in the answer to a claim. */
  runs: z.array(z.array(claimedRun)).optional(),
});
export type ReportAnswer = z.infer<typeof reportAnswer>;
