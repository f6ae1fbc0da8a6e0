/**
 * One order carried out: the scheduler of one tenant, from the first connection until it ends, for whatever reason. It
 * does not try again: that is the launcher's to decide, who is told a code and a sentence.
 *
 * Promise: when it has ended, nothing of it can touch the tenant any more, though its code may hang for ever (I6).
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
import { schemaFault } from '../loader/schema-fault.ts';
import { Ending, endingOf, guardFor, holdTenant, type Holding, stopped, textOf } from './singleton.ts';
import { writeFault } from './write-fault.ts';

export interface SchedulerLimits {
  /** How long a predecessor may take to end. */
  readonly lockMs: number;
  readonly startMs: number;
  readonly stopMs: number;
  readonly probeEveryMs: number;
  readonly probeMs: number;
  /** How often its recorded version is read. */
  readonly versionEveryMs: number;
  /** How often its schema is compared with its engine's. */
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
  /** The signal aborts when the scheduler is to end: whatever it waits for outside of its database is given up. */
  readonly contextFor: (pool: Pool, signal: AbortSignal) => EngineContext;
  readonly poolSize: number;
  /** For all connections but the one that holds the lock. */
  readonly budget?: ConnectionBudget | undefined;
  readonly limits: SchedulerLimits;
  /** Asked now and then: no launcher sees who wants to migrate this tenant. `onWanted`: somebody does, or has changed it. */
  readonly isUnwatched?: () => boolean;
  readonly onWanted?: () => void;
  /** Its last attempt ended because a part of it failed: this one has to prove itself before it is called running. */
  readonly hasFailed?: boolean;
}

const closeMs = 1_000;

/** Runs until the signal aborts, or something ends it. Never rejects. */
export async function runScheduler(options: TenantSchedulerOptions, signal: AbortSignal): Promise<Ending> {
  try {
    const found = await findEngine(options, signal);
    if (!found.ok) return new Ending('no_engine', found.detail);
    const lock = await hold(options, signal);
    checkpoint('scheduler.locked');
    return await runLocked(options, found.engine, lock, signal);
  } catch (error) {
    return signal.aborted ? stopped() : endingOf(error);
  }
}

/** Code that is being loaded cannot be interrupted: it is left to itself. */
async function findEngine(
  { engines, version, limits: { startMs } }: TenantSchedulerOptions,
  signal: AbortSignal,
): ReturnType<EngineSource['find']> {
  signal.throwIfAborted();
  const gaveUp = new Promise<Ending>((resolve) =>
    signal.addEventListener('abort', () => resolve(stopped()), { once: true }),
  );
  const found = await within(startMs, Promise.race([engines.find(version), gaveUp]));
  if (found === undefined) throw new Ending('crashed', `engine ${version} did not load within ${startMs / 1_000} s`);
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
    throw new Ending('unreachable', `its database cannot be reached (no answer for ${startMs / 1_000} s)`);
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
  const told = endOf(lock, signal);
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
    const unfit = await Promise.race([told, fitness(lock, engine)]);
    if (unfit !== undefined) return await windDown(options, scheduler, kept, unfit);
    scheduler = engine.scheduler(options.contextFor(kept.pool, over.signal));
    const changed = change(kept.pool, engine, options, over.signal);
    const ending = await untilOver(options, scheduler, Promise.race([told, changed]), over.signal);
    over.abort();
    return await windDown(options, scheduler, kept, ending);
  } catch (error) {
    over.abort();
    return await windDown(options, scheduler, kept, endingOf(error));
  } finally {
    kept.destroy();
  }
}

async function fitness(lock: Client, engine: Engine): Promise<Ending | undefined> {
  const fault = await schemaFault(lock, engine);
  if (fault !== undefined) return new Ending('no_engine', fault);
  const closed = await writeFault(lock);
  return closed === undefined ? undefined : new Ending('crashed', closed);
}

/** When it is told to stop, or its lock is lost. */
function endOf(lock: Client, signal: AbortSignal): Promise<Ending> {
  return new Promise((resolve) => {
    lock.once('end', () => resolve(new Ending('unreachable', 'the connection that held its lock was lost')));
    signal.addEventListener('abort', () => resolve(stopped()), { once: true });
    if (signal.aborted) resolve(stopped());
  });
}

/**
 * When its recorded version is another, none, or may not be read, or its schema is no longer its engine's: somebody has changed
 * the tenant without taking `drain`. Or somebody waits for `drain`, and no launcher will tell us. Other faults are noticed elsewhere.
 */
async function change(pool: Pool, engine: Engine, options: TenantSchedulerOptions, over: AbortSignal): Promise<Ending> {
  const { version, limits, isUnwatched, onWanted } = options;
  const db = onPool(pool);
  let comparedMs = performance.now();
  for (;;) {
    await pause(limits.versionEveryMs, over);
    if (over.aborted) return stopped();
    const ending = await presentVersion(db).then((recorded) => changeTo(recorded, version), changeBy);
    if (ending !== undefined) {
      // at once: the scheduler may take its time to stop, and gateways use the wrong engine meanwhile
      onWanted?.();
      return ending;
    }
    if (performance.now() - comparedMs >= limits.schemaEveryMs) {
      comparedMs = performance.now();
      const fault = await schemaFaultIn(pool, engine).catch(() => undefined);
      if (fault !== undefined) return new Ending('no_engine', fault);
    }
    if (isUnwatched?.() !== true || !(await isWanted(db).catch(() => false))) continue;
    onWanted?.();
    return new Ending('starting', 'a transaction is changing it');
  }
}

async function schemaFaultIn(pool: Pool, engine: Engine): Promise<string | undefined> {
  const client = await pool.connect();
  try {
    return await schemaFault(client, engine);
  } finally {
    client.release();
  }
}

/** Whether a migration waits for us, and whoever else is connected, to leave. */
async function isWanted(db: Db): Promise<boolean> {
  const { wanted } = await db.one<{ wanted: boolean }>(sql`
    select exists (
      select from pg_locks
       where locktype = 'advisory' and mode = 'ExclusiveLock' and not granted and objsubid = 2
         and classid = ${locks.drain[0]}::integer::oid and objid = ${locks.drain[1]}::integer::oid
         and database = (select oid from pg_database where datname = current_database())) as wanted`);
  return wanted;
}

/** Without a right nothing works, and parts of the scheduler would fail with misleading errors. */
function changeBy(error: unknown): Ending | undefined {
  const ending = endingOf(error);
  return isMissingRight(error) || ending.code === 'not_installed' || ending.code === 'starting' ? ending : undefined;
}

function changeTo(recorded: string | null | undefined, version: string): Ending | undefined {
  if (recorded === undefined) return new Ending('not_installed', 'not installed');
  return recorded === version ? undefined : endingOf(new VersionMismatch(String(recorded)));
}

async function untilOver(
  options: TenantSchedulerOptions,
  scheduler: Scheduler,
  told: Promise<Ending>,
  over: AbortSignal,
): Promise<Ending> {
  const { limits, hasFailed = false, address } = options;
  const started = scheduler.start().then(() => true);
  started.catch(() => {});
  const findCause = (): ReturnType<typeof findHangCause> => findHangCause(address, options);
  const watching = { ...options, scheduler, started, limits: limits.faults, hasFailed, findHangCause: findCause };
  const watched = watchParts(watching, over);
  const early = await within(limits.startMs, Promise.race([started, told, watched]));
  if (early === undefined) return new Ending('crashed', `it did not start within ${limits.startMs / 1_000} s`);
  if (early instanceof Ending) return early;
  const probed = scheduler.faults === undefined ? [sickness(scheduler, limits, over)] : [];
  return Promise.race([told, watched, ...probed]);
}

/** An engine of an older build reports no faults. Two probes in a row that fail: it hangs, or cannot work. */
async function sickness(
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
    const well = await within(
      limitMs,
      scheduler.probe().then(() => true),
    );
    return well ? undefined : new Ending('crashed', `it hangs: no answer to a probe for ${limitMs / 1_000} s`);
  } catch (error) {
    if (isConnectionLoss(error)) return endingOf(error);
    return new Ending('crashed', `it hangs: ${textOf(error)}`);
  }
}

/** Stops it, and where it does not stop takes its connections from it. */
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
  if (ending.code === 'stopping') return new Ending('stopping', 'it did not stop, and was cut off');
  return new Ending(ending.code, `${ending.message}; it did not stop, and was cut off`);
}
