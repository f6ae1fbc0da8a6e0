/**
 * What workers and the gateway say to each other under `/internal`: every message is a batch, and every item names
 * tenant, run and lease (I3, I4). A tenant is meant by its id: its name may be another's tomorrow. Parsed on both ends, so
 * that neither can hurt the other (I11).
 */
import { z } from 'zod';

const id = z.guid();
/** What an integer column holds. */
const int4 = z.int().max(2 ** 31 - 1);

/**
 * A kind of work: `process`, `docker` and so on. `runtimes/kinds.ts` lists those of this release; a worker or an engine of
 * another release may know others.
 */
const workKind = z.string().regex(/^[a-z][a-z0-9-]{0,39}$/);
/** Kinds that one worker takes. */
const maxRuntimes = 10;

/** A run as it is held by a worker: the lease says which hand-out. */
export const heldRun = z.object({ tenant: id, run: id, lease: int4.min(1) });
export type HeldRun = z.infer<typeof heldRun>;

/** How far the clock of a worker may be ahead of the server's: 1 day. A later incarnation would outlast every restart. */
export const maxIncarnationAheadMs = 86_400_000;

/** A worker's identity: the id stays over restarts under `up`, the incarnation (start time) does not. */
const workerIdentity = { worker: id, incarnation: z.int().min(0) };

/** Something a worker may have cached that has changed. */
export const invalidation = z.object({ tenant: id, kind: z.enum(['project', 'task']), id });
export type Invalidation = z.infer<typeof invalidation>;

/** What rides on every answer to a worker: runs to kill, runs it no longer holds, caches to drop. */
const signals = z.object({
  cancel: z.array(heldRun),
  lost: z.array(heldRun),
  invalidate: z.array(invalidation),
  /** Each gateway counts invalidations for itself, from nothing when it starts: which one this is, and how many it knows. */
  epoch: z.string().min(1).max(100),
  newest: z.int().min(0),
});
export type Signals = z.infer<typeof signals>;

/** An object of few fields. They are counted before each is looked at: a record of very many takes seconds to check. */
function boundedRecord(max: number, what: string) {
  return z
    .looseObject({})
    .refine((fields) => Object.keys(fields).length <= max, { error: `more than ${max} ${what}`, abort: true });
}

/** By epoch, up to which invalidation a worker knows; so that each is told once. */
const seen = boundedRecord(100, 'epochs').pipe(z.record(z.string().max(100), z.int().min(0)));
export type Seen = z.infer<typeof seen>;

/**
 * What could not be done for a tenant: all of this message that is its, or, where a run is named or some are listed, what is
 * of those.
 */
const failure = z.object({
  tenant: id,
  run: id.optional(),
  runs: z.array(id).optional(),
  code: z.string(),
  detail: z.string(),
});
export type Failure = z.infer<typeof failure>;

/** How many tenants a poll may leave out. */
export const mostWithout = 1_000;

/** Which runs a worker takes. */
const served = {
  /** The kinds of work that it takes. */
  runtimes: z.array(workKind).max(maxRuntimes),
  queues: z.array(z.string().min(1).max(200)).min(1).max(100),
  /**
   * The messages that the worker understands, as a number. 1, or left out: runs of tasks only. 2: also runs of nodes, and
   * runs in the answer to a report.
   */
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
  /** Tenants of which it takes no runs now: so many of theirs are to be reported still. */
  without: z.array(id).max(mostWithout).optional(),
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
  /** For people: why it ended so. */
  reason: z.string().max(4_000).nullable(),
  exit_code: int4.min(-(2 ** 31)).nullable(),
  started_at: z.iso.datetime().nullable(),
  /**
   * What the task made, as JSON text: nobody on its way has to write it again. Text that is no JSON becomes the reason of the
   * run, see `runs/results.ts`.
   */
  result: z.string().max(maxResultBytes).optional(),
});
export type Report = z.infer<typeof report>;

export const reportRequest = z.object({
  ...workerIdentity,
  reports: z.array(report).max(10_000),
  /** Places that the worker keeps free for runs in the answer. No poll of its may ask for them meanwhile. */
  places: places.optional(),
});
export type ReportRequest = z.infer<typeof reportRequest>;
/**
 * How many runs a worker may hold; a heartbeat lists them all, each of which is some 110 bytes of JSON. A worker has at most
 * 10,000 places. A gateway needs 2 to 4 µs for each run of a heartbeat.
 */
export const mostHolds = 25_000;
export const heartbeatBytes = 128 * mostHolds;

export const heartbeatRequest = z.object({
  ...workerIdentity,
  name: z.string().max(200),
  addr: z.string().max(300),
  version: z.string().max(100),
  /** How many runs it executes at once; none when it is leaving and takes no more. */
  places: int4.min(0),
  /** The kinds of work that it takes now. */
  runtimes: z.array(workKind).max(maxRuntimes),
  /** The kinds that it would take if what executes them were available, and why it is not. */
  unavailable: boundedRecord(maxRuntimes, 'kinds')
    .pipe(z.record(workKind, z.string().max(1_000)))
    .optional(),
  queues: z.array(z.string().min(1).max(200)).max(100),
  holds: z.array(heldRun).max(mostHolds),
  /** How many of its places are taken; some of what it holds takes none. Left out, all of it is taken to. */
  taken: int4.min(0).optional(),
  seen,
});
export type HeartbeatRequest = z.infer<typeof heartbeatRequest>;
export const heartbeatAnswer = z.object({
  ...signals.shape,
  /** How soon the next one is expected; left out, the worker decides. */
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
/** Only a worker of an older release does not say who it is; it is told to be upgraded. */
const identityIfKnown = { worker: id.optional(), incarnation: z.int().min(0).optional() };
export const definitionsRequest = z.object({ ...identityIfKnown, items: z.array(definitionKey).max(1_000) });
export type DefinitionsRequest = z.infer<typeof definitionsRequest>;

const named = z.object({ id, name: z.string() });
/** Variables: each is the text itself, or the name of a stash entry that is read at the start of the run. */
const environment = z.record(z.string(), z.union([z.string(), z.object({ stash: z.string() })]));
export type Environment = z.infer<typeof environment>;

/**
 * What to execute. The members differ by kind, and only the kind's own `block.ts` knows them. A worker that cannot read one
 * block can still read the other definitions of the same answer.
 */
const runtimeBlock = z.looseObject({ kind: workKind, env: environment.optional() });
export type RuntimeBlock = z.infer<typeof runtimeBlock>;

/** What a worker needs to execute a task: immutable per (task, version), so it is cached without doubt. */
const taskDefinition = z.object({
  ...definitionKey.shape,
  name: z.string(),
  job: named,
  project: named,
  timeout_ms: z.int().min(1),
  /** Defaults for what a run's own params do not name. */
  params: z.record(z.string(), z.unknown()),
  runtime: runtimeBlock,
});
export type TaskDefinition = z.infer<typeof taskDefinition>;
/** The code of a failure: definitions of this tenant that are not in the answer did not fit. Ask for them again. */
export const answerFull = 'answer_full';
/** Definitions that do not exist (any more) are left out of the answer; those of tenants that failed may exist. */
export const definitionsAnswer = z.object({ definitions: z.array(taskDefinition), failed: z.array(failure) });

/** The stash values that a run's environment names; project entries win over global ones. */
export const secretsRequest = z.object({
  ...identityIfKnown,
  ...heldRun.shape,
  names: z.array(z.string().max(200)).max(1_000),
});
export type SecretsRequest = z.infer<typeof secretsRequest>;
export const secretsAnswer = z.object({ values: z.record(z.string(), z.base64()) });

/** What a run has in common with every other, whatever it is about. */
const handOut = {
  ...heldRun.shape,
  /** What it is called now: for the task's environment, and the address that it is given. */
  tenant_name: z.string(),
  engine: z.string(),
  attempt: z.int(),
  priority: z.enum(['backfill', 'low', 'normal', 'high']),
  params: z.record(z.string(), z.unknown()),
  /** Bearer credential for the task itself; dies with the lease. Empty where all that was asked for is `none`. */
  credential: z.string(),
};

/** A node of an execution, with all that a worker needs: no definition is fetched for it. */
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

/** A run is about a task at an instant, or about a node of an execution. Only workers of wire 2 are given the latter. */
const claimedRun = z.union([
  z.object({ ...handOut, task: id, version: z.int(), instant: z.iso.datetime(), node: absent }),
  z.object({ ...handOut, task: absent, version: absent, instant: absent, node: nodeWork }),
]);
export type ClaimedRun = z.infer<typeof claimedRun>;
export type TaskRun = Exclude<ClaimedRun, { node: NodeWork }>;

export const claimAnswer = z.object({ runs: z.array(claimedRun), ...signals.shape });
export type ClaimAnswer = z.infer<typeof claimAnswer>;

/**
 * A report that came too late or twice is acknowledged all the same (I3). What failed is to be sent again, without the
 * rest: all of a tenant, or the runs that are listed. But a run that is named was refused, and will be again.
 */
export const reportAnswer = z.object({
  accepted: z.int(),
  failed: z.array(failure),
  /** For the places that the request named: as in the answer to a claim. */
  runs: z.array(claimedRun).optional(),
});
