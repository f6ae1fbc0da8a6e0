/**
 * The launcher: keeps one scheduler alive for each tenant that is wanted. Any number of launchers may run; one is active, the
 * others stand by. Its main loop discovers databases, handles messages, makes automatic transitions, and sleeps until
 * something happens.
 *
 * Its memory may be lost at any time: the next launcher reads the state from the control database. It waits for no tenant and
 * no host; whatever takes time is a state. README.md has the diagram.
 */
import { performance } from 'node:perf_hooks';
import type { Pool } from 'pg';
import { everyone } from '../contract/channels.ts';
import { isConnectionLoss } from '../errors.ts';
import { Bell } from '../kernel/bell.ts';
import { checkpoint } from './checkpoints.ts';
import { newId } from '../kernel/id.ts';
import type { Log } from '../kernel/log.ts';
import { LogThrottle } from '../kernel/log-throttle.ts';
import { all, growingTo, loop, pause, type Service } from '../kernel/service.ts';
import { type Db, onPool } from '../kernel/sql.ts';
import { runningTime } from '../kernel/time.ts';
import type { Address } from '../postgres/address.ts';
import { type Terminated, terminateHolders } from '../postgres/drained.ts';
import { openPool } from '../postgres/pool/pool.ts';
import type { WakeHub } from '../postgres/wake.ts';
import type { TenantRow } from '../control/queries.ts';
import {
  type Database,
  discover,
  isNothing,
  type KnownTenant,
  presences,
  readDatabases,
} from './discovery/discovery.ts';
import { Discovery } from './discovery/writes.ts';
import { findFates } from './hosts/host-fates.ts';
import { type LaunchHost, readClock, readEntries, readHosts, readMessages, readSlots } from './launch-queries.ts';
import { isTakenOver, Lease } from './lease.ts';
import type { LaunchEntry } from './ledger.ts';
import { type EnginesPort, Looks } from '../loader/inspections.ts';
import { formatReason } from '../control/format-reason.ts';
import { hintChanged } from '../control/messages.ts';
import { SuspectHosts } from './hosts/suspect-hosts.ts';
import { writePlan } from './plan-writes.ts';
import { RejectedTenants } from './rejected-tenants.ts';
import { type HostsPort, Spawning } from './hosts/spawning.ts';
import { isFailing } from './supervisor.ts';
import { type Change, decide, type Plan, type World } from './turn.ts';
import { readSightings, Watch } from './discovery/watch.ts';

export interface LauncherOptions {
  readonly controlAddress: Address;
  readonly allowPooler: boolean;
  readonly hub: WakeHub;
  readonly engines: EnginesPort;
  readonly hosts: HostsPort;
  /** `all`: every database of the control database's server is a tenant. */
  readonly discover: 'all' | 'registered';
  readonly addressOf: (row: TenantRow) => Address;
  /** Whether the tenant's database is on another server than the control database. */
  readonly isElsewhere: (row: TenantRow) => boolean;
  /** Default limit of slots, unless the control database has another. */
  readonly maxBackgroundWorkers: number;
  /** No other launcher can be alive, so it takes the lease at once. */
  readonly embedded: boolean;
  /** The running release. One host of it is kept even without a tenant. */
  readonly version: string;
  /** How long any other host may be idle before it is dismissed; default: a minute. */
  readonly idleHostMs?: number;
  /** Maximum number of hosts per engine version. Tenants' own hosts do not count. */
  readonly mostHosts: number;
  /** Keep an empty host of the same engine as a spare for each engine whose tenants share a host. */
  readonly keepsSpares: boolean;
  readonly log: Log;
}

const maxSleepMs = 1_000;
const watchEveryMs = 500;
/** Interval of the watch while a tenant waits for a transaction. */
const watchWaitedForMs = 250;
/** How long a migration or a command on a database waits for a tenant's connections to close, before they are ended. */
const graceMs = { drain: 5_000, database: 2_000 } as const;
const usualIdleHostMs = 60_000;
/** Maximum number of turns without a pause. */
const maxTurnsInRow = 32;
/** A query without an answer for this long fails, because the network may be gone; the next uses a new connection. */
const queryTimeoutMs = 10_000;
/** `idle_in_transaction_session_timeout`: bounds how long a launcher that freezes in a transaction blocks its successor. */
const maxIdleInTransaction = '3s';
/** `lock_timeout`: a tenant whose row is locked for longer is left out of the turn. */
const maxLockWait = '1s';

/** The time that hosts have after an outage to report which schedulers have ended. */
const recoveryMs = 10_000;

const pauses = growingTo(maxSleepMs);

export function makeLauncher(options: LauncherOptions): Service {
  return new Launcher(options).service;
}

class Launcher {
  readonly #options: LauncherOptions;
  readonly #id = newId();
  readonly #bell: Bell;
  readonly #looks: Looks;
  readonly #watch = new Watch();
  readonly #lease: Lease;
  readonly #rejected: RejectedTenants;
  readonly #discovery: Discovery;
  readonly #spawning: Spawning;
  readonly #db: Db;
  #pool: Pool | undefined;
  // reset in #begin() when the epoch changes
  #epoch: number | undefined;
  #turns = 0;
  #tenantOids: ReadonlySet<number | null> = new Set();
  #isWaitedFor = false;
  /** Sightings of the last turn, with the tenant of each. */
  readonly #known = new Map<string, string | null>();
  #isNew = true;
  /** The control database was unreachable, and has not been read since. */
  #isAway = false;
  #recoveredMs = Number.NEGATIVE_INFINITY;
  readonly #throttle = new LogThrottle();
  readonly #idleSince = new Map<string, number>();
  readonly #suspectHosts = new SuspectHosts();
  readonly service: Service;

  constructor(options: LauncherOptions) {
    this.#options = options;
    this.#bell = new Bell(runningTime);
    this.#db = onPool(this.#openPool());
    this.#rejected = new RejectedTenants(options.log, 'launch');
    this.#discovery = new Discovery({ db: this.#db, hub: options.hub, log: options.log });
    this.#spawning = new Spawning({
      hosts: options.hosts,
      log: options.log,
      diagnose: (engine) => options.engines.diagnose(engine),
    });
    this.#looks = new Looks({ engines: options.engines, onFound: () => this.#bell.ring() });
    this.#lease = new Lease({
      db: this.#db,
      launcherId: this.#id,
      version: options.version,
      alone: options.embedded,
      onChange: () => this.#bell.ring(),
      onError: this.#warn('renewing its lease'),
    });
    const { stop, ...service } = all('launcher', [
      this.#lease.service,
      this.#wakeUps(),
      loop('watch', (signal) => this.#look(signal), this.#warn('watching for transactions'), pauses),
      loop('turns', (signal) => this.#pass(signal), this.#warn('taking a turn'), pauses),
    ]);
    this.service = {
      ...service,
      stop: async (deadlineMs) => {
        await stop(deadlineMs);
        await this.#pool?.end().catch(() => {});
      },
    };
  }

  #openPool(): Pool {
    const { controlAddress, allowPooler, log } = this.#options;
    this.#pool = openPool({
      address: controlAddress,
      schema: 'control',
      application: 'millrace launcher',
      max: 3,
      queryTimeoutMs,
      allowPooler,
      onOpen: async (client) => {
        await client.query(
          `set idle_in_transaction_session_timeout to '${maxIdleInTransaction}'; set lock_timeout to '${maxLockWait}'`,
        );
      },
      onError: (error) => log.debug({ err: error }, 'idle connection lost'),
    });
    return this.#pool;
  }

  #warn(doing: string): (error: unknown) => void {
    return (error) => {
      if (isConnectionLoss(error)) this.#isAway = true;
      if (isTakenOver(error)) this.#lease.lose();
      else if (this.#throttle.isDue(doing, error))
        this.#options.log.warn({ err: error, doing }, 'launcher step failed, retrying');
    };
  }

  #wakeUps(): Service {
    const { hub } = this.#options;
    const ring = (): void => this.#bell.ring();
    let off: (() => void)[] = [];
    return {
      name: 'launcher wake-ups',
      start: async () => {
        off = [hub.on('messages', everyone, ring), hub.on('host_reports', everyone, ring)];
      },
      stop: async () => {
        for (const each of off) each();
      },
    };
  }

  async #look(signal: AbortSignal): Promise<void> {
    if (this.#lease.epoch !== undefined) {
      const sightings = await readSightings(this.#db);
      const ours = sightings.filter(({ databaseOid }) => this.#tenantOids.has(databaseOid));
      const nowMs = performance.now();
      if (this.#watch.note(ours, nowMs)) this.#bell.ring();
      const overdue = this.#watch.overdue(nowMs, graceMs);
      if (overdue.length > 0) this.#logRemaining(await terminateHolders(this.#db, { oids: overdue }));
    }
    await pause(this.#isWaitedFor ? watchWaitedForMs : watchEveryMs, signal);
  }

  /** Throttled, because the launcher retries to end these connections while a migration waits for them. */
  #logRemaining({ left }: Pick<Terminated, 'left'>): void {
    if (left.length > 0 && this.#throttle.isDue('ending connections of engines', left.join()))
      this.#options.log.warn({ backends: left }, 'connections of engines belong to another role and cannot be ended');
  }

  async #pass(signal: AbortSignal): Promise<void> {
    const { epoch } = this.#lease;
    if (epoch !== this.#epoch) this.#begin(epoch);
    const sleepMs = epoch === undefined ? maxSleepMs : await this.#turn(epoch);
    this.#turns = sleepMs > 0 ? 0 : this.#turns + 1;
    if (sleepMs > 0 || this.#turns > maxTurnsInRow) await this.#bell.wait(Math.max(sleepMs, 20), signal);
  }

  #begin(epoch: number | undefined): void {
    const { log } = this.#options;
    this.#epoch = epoch;
    for (const memory of [this.#known, this.#idleSince, this.#suspectHosts]) memory.clear();
    this.#isNew = true;
    this.#watch.forget();
    this.#tenantOids = new Set();
    if (epoch === undefined) log.info({}, 'launcher on standby');
    else log.info({ epoch }, 'launcher active');
  }

  /** Returns how long to sleep; 0: there may be more to do. */
  async #turn(epoch: number): Promise<number> {
    const world = await this.#read(epoch);
    checkpoint('turn.read');
    const plan = decide(world);
    const dismissed = this.#chooseDismissed(plan, world);
    const leftOut = this.#rejected.current();
    const written = await writePlan(this.#db, { plan, epoch, at: world.now, dismissed, ...leftOut });
    const { any, left } = written;
    if (left.length > 0) this.#logRemaining({ left });
    this.#rejected.note(written.refused, leftOut.again, (id) => nameIn(world, id));
    if (any) checkpoint('turn.written');
    this.#carryOut(written.plan, world);
    if (any) return 0;
    const dueMs = plan.dueAt === undefined ? maxSleepMs : plan.dueAt.getTime() - world.now.getTime();
    return Math.max(1, Math.min(maxSleepMs, dueMs));
  }

  async #read(epoch: number): Promise<World> {
    const db = this.#db;
    const messages = await readMessages(db);
    const { now, limit } = await readClock(db);
    this.#lease.noteServerTime(now);
    // read before the reports on schedulers: an ending host first reports why each scheduler ends, then its own end
    const registered = await readHosts(db);
    let { entries, databases } = await this.#readTenants();
    const changed = discover(entries.map(this.#asKnown), databases, {
      discover: this.#options.discover,
      controlDatabase: this.#options.controlAddress.database,
    });
    if (!isNothing(changed) && (await this.#discovery.write(changed, epoch, now)))
      ({ entries, databases } = await this.#readTenants());
    const presence = presences(entries.map(this.#asKnown), databases);
    this.#tenantOids = new Set(entries.map(({ tenant }) => tenant.databaseOid));
    if (this.#isAway) this.#recoveredMs = performance.now();
    this.#isAway = false;
    const isRecovering = performance.now() - this.#recoveredMs < recoveryMs;
    const hosts = await findFates(db, registered, {
      now,
      entries,
      fate: (host) => this.#options.hosts.fate(host),
      // an outage ends all connections, also those of hosts that are alive
      mayMiss: this.#lease.mayJudge && !isRecovering,
      // behind a pooler, connections may have the pooler's name
      isSeen: ({ tenant }) => !this.#options.allowPooler && !this.#options.isElsewhere(tenant),
    });
    this.#spawning.see(hosts);
    return {
      now,
      launcherId: this.#id,
      limit: limit ?? this.#options.maxBackgroundWorkers,
      messages,
      entries,
      hosts: this.#suspectHosts.mark(hosts, entries),
      slots: await readSlots(db),
      sightings: this.#watch.current,
      presenceOf: ({ tenant }) => presence.get(tenant.id) ?? 'gone',
      findings: this.#looks.findings(),
      mayJudge: this.#lease.mayJudge,
      known: this.#known,
      isNew: this.#isNew,
      isRecovering,
      mostHosts: this.#options.mostHosts,
      keepsSpares: this.#options.keepsSpares,
      hostFaults: this.#spawning.faults(),
    };
  }

  /** Reads tenants first, so that no row refers to a database that was created or renamed after the databases were listed. */
  async #readTenants(): Promise<{ entries: LaunchEntry[]; databases: Database[] }> {
    const entries = await readEntries(this.#db);
    return { entries, databases: await readDatabases(this.#db) };
  }

  readonly #asKnown = ({ tenant }: LaunchEntry): KnownTenant => ({
    ...tenant,
    elsewhere: this.#options.isElsewhere(tenant),
  });

  /** Carries out what is committed. If something is lost here, a sweep or the next turn makes up for it. */
  #carryOut(plan: Plan, world: World): void {
    const { hub, hosts, addressOf } = this.#options;
    for (const hostId of new Set(plan.changedOrders.map((each) => each.hostId))) hub.send('orders', hostId);
    for (const tenantId of plan.hinted) hintChanged(hub, tenantId);
    this.#known.clear();
    for (const { key, tenantId } of plan.sighted) this.#known.set(key, tenantId);
    this.#isNew = false;
    for (const { machine, pid, startedAt } of plan.lost)
      hosts.kill({ machine, pid, ageMs: world.now.getTime() - startedAt.getTime() });
    this.#spawning.ask(plan.missing, world.now);
    this.#looks.forget(plan.forget);
    this.#looks.ask(
      plan.looks.map(({ entry: { tenant }, idle }) => ({ tenantId: tenant.id, address: addressOf(tenant), idle })),
    );
    this.#isWaitedFor = [...world.entries].some(({ launch }) => launch?.reason?.code === 'waiting_on_transaction');
    this.#log(plan);
  }

  #log(plan: Plan): void {
    const { log } = this.#options;
    for (const { id, pid, machine, fate } of plan.lost)
      log.warn({ host: id, hostPid: pid, machine, fate }, 'host lost, its tenants move to other hosts');
    for (const change of plan.changes) if (change.isNews) logChange(log, change);
  }

  /** Hosts that have been idle for `idleHostMs`. The last host of the running release stays. */
  #chooseDismissed(plan: Plan, { now, hosts }: World): string[] {
    const { version, idleHostMs = usualIdleHostMs } = this.#options;
    const nowMs = now.getTime();
    const idle = new Set(plan.idle.map(({ id }) => id));
    for (const id of this.#idleSince.keys()) if (!idle.has(id)) this.#idleSince.delete(id);
    for (const id of idle) if (!this.#idleSince.has(id)) this.#idleSince.set(id, nowMs);
    const isLong = ({ id }: LaunchHost): boolean => nowMs - (this.#idleSince.get(id) ?? nowMs) >= idleHostMs;
    let spare = hosts.filter(({ engine, leaving }) => engine === version && !leaving).length - 1;
    const dismissed = plan.idle.filter(isLong).filter(({ engine }) => engine !== version || spare-- > 0);
    return dismissed.map(({ id }) => id);
  }
}

function nameIn({ entries }: World, tenantId: string): string {
  return entries.find(({ tenant }) => tenant.id === tenantId)?.tenant.name ?? tenantId;
}

function logChange(log: Log, { entry: { tenant }, launch }: Change): void {
  const { state, reason } = launch;
  const fields = { tenant: tenant.name, state, reason: reason === null ? null : formatReason(reason) };
  if (isFailing(reason)) log.warn({ ...fields, nextTryAt: launch.retryAt }, 'tenant is not running');
  else if (reason?.code === 'starting' || reason?.code === 'stopping')
    log.debug(fields, 'tenant is starting or stopping');
  else if (state === 'STARTED') log.info({ tenant: tenant.name }, 'tenant is running');
  else log.info(fields, 'tenant is not running');
}
