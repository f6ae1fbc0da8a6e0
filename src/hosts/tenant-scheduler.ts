/**
 * Carries out one order: runs the scheduler of one tenant, from the first connection until it ends. It does not retry: it
 * returns a reason, and the launcher decides.
 *
 * Promise: when it has returned, the scheduler can no longer touch the tenant, even if its code hangs for ever (I6).
 */
import type { Client, Pool } from 'pg';
import type { EngineContext } from '../contract/context.ts';
import type { Engine, Scheduler } from '../contract/engine.ts';
import { isConnectionLoss, isMissingRight } from '../errors.ts';
import { checkpoint } from './checkpoints.ts';
import { deadlineIn, pause, within } from '../kernel/service.ts';
import type { ConnectionBudget } from '../postgres/pool/connection-budget.ts';
import { type Db, onPool, sql } from '../kernel/sql.ts';
import { type KeptPool, keptPool } from '../postgres/pool/kept-pool.ts';
import { locks } from '../postgres/locks.ts';
import { VersionMismatch } from '../postgres/pool/pool.ts';
import { presentVersion } from '../postgres/recorded-version.ts';
import type { EngineSource } from '../loader/engines/engines.ts';
import { type FaultLimits, type PartHooks, usualFaultLimits, watchParts } from './failing-parts.ts';
import { findHangCause } from './hang-cause.ts';
import { boundText, noEngine, type Reason, reasons } from '../control/reasons.ts';
import { findSchemaFault } from '../loader/schema-fault.ts';
import { Ending, endingOf, guardFor, holdTenant, type Holding, stopped, textOf } from './singleton.ts';
import { findWriteFault } from './write-fault.ts';

export interface SchedulerLimits {
  /** Time that a predecessor has to end. */
  readonly lockMs: number;
  readonly startMs: number;
  readonly stopMs: number;
  readonly probeEveryMs: number;
  readonly probeMs: number;
  /** Interval between reads of the recorded version. */
  readonly versionEveryMs: number;
  /** Interval between comparisons of the tenant's schema with its engine's. */
  readonly schemaEveryMs: number;
  readonly faults: FaultLimits;
}

export const usualLimits: SchedulerLimits = {
  lockMs: 5_000,
  startMs: 60_000,
  stopMs: 5_000,
  probeEveryMs: 5_000,
  probeMs: 10_000,
  versionEveryMs: 2_000,
  schemaEveryMs: 15_000,
  faults: usualFaultLimits,
};

export interface TenantSchedulerOptions extends Holding, PartHooks {
  readonly engines: EngineSource;
  /** The signal aborts when the scheduler must end. It then gives up every wait outside of its database. */
  readonly contextFor: (pool: Pool, signal: AbortSignal) => EngineContext;
  readonly poolSize: number;
  /** For all connections but the one that holds the lock. */
  readonly budget?: ConnectionBudget | undefined;
  readonly limits: SchedulerLimits;
  /**
   * Whether no launcher watches this tenant for migrations; called at every read of the version. `onWanted` is called when a
   * migration waits for the tenant, or its version has changed.
   */
  readonly isUnwatched?: () => boolean;
  readonly onWanted?: () => void;
  /** The last attempt ended because a part failed: this one is on probation before it counts as running. */
  readonly hasFailed?: boolean;
}

const closeMs = 1_000;
/** `millrace.publish()` notifies it. Notifications stay within one database, and this is the only connection that an idle tenant has. */
const outboxChannel = 'millrace_outbox';
const lockLost: Reason = { code: 'unreachable', cause: 'lock_connection_lost', data: {} };

/** Runs until the signal aborts, or something ends it. Never rejects. */
export async function runScheduler(options: TenantSchedulerOptions, signal: AbortSignal): Promise<Ending> {
  try {
    const found = await findEngine(options, signal);
    if (!found.ok) return new Ending(noEngine(found));
    const lock = await hold(options, signal);
    checkpoint('scheduler.locked');
    return await runLocked(options, found.engine, lock, signal);
  } catch (error) {
    return signal.aborted ? stopped() : endingOf(error);
  }
}

function lateLoad(engine: string, seconds: number): Ending {
  return new Ending({ code: 'crashed', cause: 'late_load', data: { engine, seconds } });
}

/** Loading of code cannot be interrupted: after `startMs` it is abandoned, and may still finish. */
async function findEngine(
  { engines, version, limits: { startMs } }: TenantSchedulerOptions,
  signal: AbortSignal,
): ReturnType<EngineSource['find']> {
  signal.throwIfAborted();
  const gaveUp = new Promise<Ending>((resolve) =>
    signal.addEventListener('abort', () => resolve(stopped()), { once: true }),
  );
  const found = await within(startMs, Promise.race([engines.find(version), gaveUp]));
  if (found === undefined) throw lateLoad(version, startMs / 1_000);
  if (found instanceof Ending) throw found;
  return found;
}

async function hold(options: TenantSchedulerOptions, signal: AbortSignal): Promise<Client> {
  const { startMs, lockMs } = options.limits;
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), startMs);
  try {
    return await holdTenant(options, lockMs, options.onWait, AbortSignal.any([signal, late.signal]));
  } catch (error) {
    if (!late.signal.aborted) throw error;
    throw new Ending({ code: 'unreachable', cause: 'no_answer', data: { seconds: startMs / 1_000 } });
  } finally {
    clearTimeout(timer);
  }
}

async function runLocked(
  options: TenantSchedulerOptions,
  engine: Engine,
  lock: Client,
  signal: AbortSignal,
): Promise<Ending> {
  const external = endOf(lock, signal);
  const kept = keptPool(lock, {
    address: options.address,
    schema: 'millrace',
    application: options.application,
    allowPooler: options.allowPooler,
    max: Math.min(options.poolSize - 1, options.budget?.fairShare ?? Number.POSITIVE_INFINITY),
    budget: options.budget,
    onOpen: guardFor(options.version),
    onError: () => {},
  });
  const over = new AbortController();
  let scheduler: Scheduler | undefined;
  try {
    const unfit = await Promise.race([external, checkFitness(lock, engine)]);
    if (unfit !== undefined) return await windDown(options, scheduler, kept, unfit);
    const ctx = options.contextFor(kept.pool, over.signal);
    lock.on('notification', ({ channel }) => {
      if (channel === outboxChannel) ctx.hints.send('outbox');
    });
    scheduler = engine.scheduler(ctx);
    const changed = awaitChange(kept.pool, engine, options, over.signal);
    const ending = await untilOver(options, scheduler, Promise.race([external, changed]), over.signal);
    over.abort();
    return await windDown(options, scheduler, kept, ending);
  } catch (error) {
    over.abort();
    return await windDown(options, scheduler, kept, endingOf(error));
  } finally {
    kept.destroy();
  }
}

async function checkFitness(lock: Client, engine: Engine): Promise<Ending | undefined> {
  const fault = (await findSchemaFault(lock, engine)) ?? (await findWriteFault(lock));
  if (fault !== undefined) return new Ending(fault);
  await lock.query(`listen ${outboxChannel}`);
  return undefined;
}

/** Resolves when the signal aborts, or the connection of the lock is lost. */
function endOf(lock: Client, signal: AbortSignal): Promise<Ending> {
  return new Promise((resolve) => {
    lock.once('end', () => resolve(new Ending(lockLost)));
    signal.addEventListener('abort', () => resolve(stopped()), { once: true });
    if (signal.aborted) resolve(stopped());
  });
}

/**
 * Resolves when the recorded version has changed, is missing or may not be read, or when the schema no longer matches the
 * engine: the tenant was changed without taking `drain`. Also resolves when a migration waits for `drain` and no launcher
 * watches for it. Other faults are noticed elsewhere.
 */
async function awaitChange(
  pool: Pool,
  engine: Engine,
  options: TenantSchedulerOptions,
  over: AbortSignal,
): Promise<Ending> {
  const { version, limits, isUnwatched, onWanted } = options;
  const db = onPool(pool);
  let comparedMs = performance.now();
  for (;;) {
    await pause(limits.versionEveryMs, over);
    if (over.aborted) return stopped();
    const ending = await presentVersion(db).then((recorded) => changeTo(recorded, version), changeBy);
    if (ending !== undefined) {
      // at once: gateways use the wrong engine until they hear of the change, and the scheduler may stop slowly
      onWanted?.();
      return ending;
    }
    if (performance.now() - comparedMs >= limits.schemaEveryMs) {
      comparedMs = performance.now();
      const fault = await compareSchema(pool, engine).catch(() => undefined);
      if (fault !== undefined) return new Ending(fault);
    }
    if (isUnwatched?.() !== true || !(await isWanted(db).catch(() => false))) continue;
    onWanted?.();
    return new Ending(reasons.beingChanged);
  }
}

async function compareSchema(pool: Pool, engine: Engine): Promise<Reason | undefined> {
  const client = await pool.connect();
  try {
    return await findSchemaFault(client, engine);
  } finally {
    client.release();
  }
}

/** Whether a migration waits until this scheduler and all other users have left the tenant. */
async function isWanted(db: Db): Promise<boolean> {
  const { wanted } = await db.one<{ wanted: boolean }>(sql`
    select exists (
      select from pg_locks
       where locktype = 'advisory' and mode = 'ExclusiveLock' and not granted and objsubid = 2
         and classid = ${locks.drain[0]}::integer::oid and objid = ${locks.drain[1]}::integer::oid
         and database = (select oid from pg_database where datname = current_database())) as wanted`);
  return wanted;
}

/** A missing privilege ends the scheduler at once: otherwise its parts would fail with misleading errors. */
function changeBy(error: unknown): Ending | undefined {
  const ending = endingOf(error);
  return isMissingRight(error) || ending.code === 'not_installed' || ending.code === 'starting' ? ending : undefined;
}

function changeTo(recorded: string | null | undefined, version: string): Ending | undefined {
  if (recorded === undefined) return new Ending(reasons.notInstalled);
  return recorded === version ? undefined : endingOf(new VersionMismatch(String(recorded)));
}

async function untilOver(
  options: TenantSchedulerOptions,
  scheduler: Scheduler,
  external: Promise<Ending>,
  over: AbortSignal,
): Promise<Ending> {
  const { limits, hasFailed = false, address } = options;
  const started = scheduler.start().then(() => true);
  started.catch(() => {});
  const findCause = (): ReturnType<typeof findHangCause> => findHangCause(address, options);
  const watching = { ...options, scheduler, started, limits: limits.faults, hasFailed, findHangCause: findCause };
  const watched = watchParts(watching, over);
  const early = await within(limits.startMs, Promise.race([started, external, watched]));
  if (early === undefined)
    return new Ending({ code: 'crashed', cause: 'late_start', data: { seconds: limits.startMs / 1_000 } });
  if (early instanceof Ending) return early;
  const probed = scheduler.faults === undefined ? [awaitSickness(scheduler, limits, over)] : [];
  return Promise.race([external, watched, ...probed]);
}

/** For engines of older builds, which report no faults. Resolves after two failed probes in a row. */
async function awaitSickness(
  scheduler: Scheduler,
  { probeEveryMs, probeMs }: SchedulerLimits,
  over: AbortSignal,
): Promise<Ending> {
  for (let failures = 0; ; ) {
    await pause(probeEveryMs, over);
    const fault = over.aborted ? undefined : await probe(scheduler, probeMs);
    failures = fault === undefined ? 0 : failures + 1;
    if (fault !== undefined && failures > 1) return fault;
    if (over.aborted) return stopped();
  }
}

async function probe(scheduler: Scheduler, limitMs: number): Promise<Ending | undefined> {
  try {
    const isWell = await within(
      limitMs,
      scheduler.probe().then(() => true),
    );
    if (isWell) return undefined;
    return new Ending({ code: 'crashed', cause: 'probe_unanswered', data: { seconds: limitMs / 1_000 } });
  } catch (error) {
    if (isConnectionLoss(error)) return endingOf(error);
    return new Ending({ code: 'crashed', cause: 'probe_failed', data: { text: boundText(textOf(error)) } });
  }
}

/** Stops the scheduler. If it does not stop in time, its connections are closed. */
async function windDown(
  { limits }: TenantSchedulerOptions,
  scheduler: Scheduler | undefined,
  kept: KeptPool,
  ending: Ending,
): Promise<Ending> {
  const stopping = scheduler?.stop(deadlineIn(limits.stopMs)).then(
    () => true,
    () => false,
  );
  const ended = stopping === undefined || (await within(limits.stopMs, stopping)) === true;
  if (ended) {
    await kept.close(closeMs);
    return ending;
  }
  const { reason } = ending;
  if (reason.code === 'stopping') return new Ending({ code: 'stopping', cause: 'cut_off', data: {} });
  return new Ending({ ...reason, wasCutOff: true });
}
