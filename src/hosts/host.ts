/**
 * A host: a process that runs the schedulers of many tenants, all of one engine version.
 *
 * 1. It registers itself in the control database and beats every second.
 * 2. It carries out exactly the orders that name it, and reports on each in `scheduler`. It decides nothing: the launcher
 *    reads the reports and decides. It keeps running without a launcher.
 * 3. If its row is gone, it was written off. It stops all its schedulers and registers again under another id.
 * 4. It ends after a minute without its control database.
 */
import type { Pool } from 'pg';
import { everyone } from '../contract/channels.ts';
import type { EngineContext, SchedulerStatus } from '../contract/context.ts';
import { isStatementRejection } from '../errors.ts';
import { Bell } from '../kernel/bell.ts';
import { observeHeap } from '../kernel/process/heap-observer.ts';
import { newId } from '../kernel/id.ts';
import { isolateRejected } from '../kernel/isolate-rejected.ts';
import type { Log } from '../kernel/log.ts';
import { machine } from '../kernel/process/machine.ts';
import { all, every, growingTo, loop, type Service, within } from '../kernel/service.ts';
import type { Db } from '../kernel/sql.ts';
import { LogThrottle } from '../kernel/log-throttle.ts';
import type { Telemetry } from '../kernel/telemetry.ts';
import { runningTime } from '../kernel/time.ts';
import type { Address } from '../postgres/address.ts';
import { retryUntilServerAnswers } from '../postgres/wait-for-server.ts';
import type { ConnectionBudget } from '../postgres/pool/connection-budget.ts';
import type { WakeHub } from '../postgres/wake.ts';
import { Attempts } from './attempts.ts';
import type { TenantRow } from '../control/queries.ts';
import type { EngineSource } from '../loader/engines/engines.ts';
import type { PartHooks } from './failing-parts.ts';
import {
  beatHost,
  beatSchedulers,
  connectionsOf,
  giveUpHost,
  type HostAnswer,
  isWrittenOff,
  leaveSoon,
  type Order,
  ordersFor,
  registerHost,
  removeHost,
  type HostReport,
  type SchedulerBeat,
  writeReports,
} from './host-queries.ts';
import { BeatPace } from './due-beats.ts';
import { Housekeeping } from './housekeeping.ts';
import { hintChanged } from '../control/messages.ts';
import { Ending } from './singleton.ts';
import { Tallies } from './tallies.ts';
import { runScheduler, type SchedulerLimits, usualLimits } from './tenant-scheduler.ts';
import { HostReports } from './host-reports.ts';
import { formatCause } from '../control/format-reason.ts';
import type { Reason } from '../control/reasons.ts';

export interface HostOptions {
  readonly control: Db;
  readonly hub: WakeHub;
  /** The engine whose schedulers it runs. */
  readonly version: string;
  readonly engines: EngineSource;
  readonly addressOf: (row: TenantRow) => Address;
  /** Whether the tenant's database is on another server than the control database. */
  readonly isElsewhere: (row: TenantRow) => boolean;
  readonly contextFor: (row: TenantRow, pool: Pool) => EngineContext;
  readonly statuses: Map<string, SchedulerStatus>;
  readonly telemetry: Telemetry;
  readonly allowPooler: boolean;
  readonly poolSize: number;
  /** Connections that all its schedulers share, beside the one that each of them keeps; default: no limit. */
  readonly budget?: ConnectionBudget;
  /** Resident memory in bytes. The host ends if it exceeds this for `overMemoryMs`. */
  readonly memoryLimit: number;
  /** Bytes that its heap may hold after garbage collection. */
  readonly heapLimit: number;
  /** A person has started it. If it is told to leave, it stops its schedulers and registers again; the process stays. */
  readonly stays: boolean;
  readonly log: Log;
  /** Ends the wait for a control database that does not answer. */
  readonly signal?: AbortSignal;
  readonly limits?: SchedulerLimits;
  readonly patience?: Partial<HostPatience>;
  /** Called when the number of tenants whose schedulers run here, or are about to, may have changed. */
  readonly onTenants?: (count: number) => void;
}

interface HostPatience {
  /** The host ends after this long without its control database. `answerMs`: time that the database has for an answer. */
  readonly aloneMs: number;
  readonly answerMs: number;
  readonly overMemoryMs: number;
}

export interface Host extends Service {
  /** Its id, which changes when it registers again. */
  readonly id: () => string;
  /** Resolves when the host must end without having been stopped. The caller then stops it. */
  readonly ended: Promise<HostEnd>;
}

/** `asked`: the launcher has told it to leave, so the end is no failure. */
type HostEnd = { readonly asked: boolean; readonly reason: string };

const usualPatience: HostPatience = { aloneMs: 60_000, answerMs: 5_000, overMemoryMs: 10_000 };
const beatEveryMs = 1_000;
const maxGoodbyeMs = 1_000;
const nothing: SchedulerStatus = { queuedTriggers: 0, nextTriggerId: null, nextTriggers: [], ready: false };

export function makeHost(options: HostOptions): Host {
  const host = new RunningHost(options);
  return { ...host.service, id: () => host.id, ended: host.ended };
}

class RunningHost {
  readonly #options: HostOptions;
  readonly #orders = new Bell(runningTime);
  readonly #attempts: Attempts;
  readonly #reports: HostReports;
  readonly #tallies: Tallies;
  readonly #pace = new BeatPace();
  readonly #throttle = new LogThrottle();
  readonly #housekeeping = new Housekeeping();
  readonly #patience: HostPatience;
  #unsubscribe = (): void => {};
  #end: (how: HostEnd) => void = () => {};
  #heardAt = performance.now();
  #fitAt = performance.now();
  /** It has marked itself as lost, and writes nothing more. */
  #lost = false;
  #stopping = false;
  #hasLauncher = true;
  /** Under way while a host with `stays` stops its schedulers, before it registers again. */
  #lettingGo: Promise<void> | undefined;
  id = newId();
  readonly ended: Promise<HostEnd>;
  readonly service: Service;

  constructor(options: HostOptions) {
    this.#options = options;
    this.#patience = { ...usualPatience, ...options.patience };
    this.#tallies = new Tallies(options.telemetry);
    this.ended = new Promise((resolve) => (this.#end = resolve));
    this.#reports = new HostReports({
      bell: new Bell(runningTime),
      write: (reports) => this.#write(reports),
      onError: this.#onError('reporting to the launcher'),
    });
    this.#attempts = new Attempts({
      run: (order, hooks, signal) => this.#run(order, hooks, signal),
      report: (report) => this.#reports.add(report),
      onEnd: (order, ending) => this.#onEnd(order, ending),
    });
    this.service = all('host', [
      // stopped last: without beats, the host would be taken for lost while its schedulers take their time to stop
      {
        name: 'registration',
        start: () => retryUntilServerAnswers(() => this.#register(), options.signal),
        stop: () => this.#leave(),
      },
      every(beatEveryMs, 'beat', () => this.#beat(), this.#onError('beating')),
      // apart from the host's beat: a locked row of a scheduler must not make the host look lost
      every(beatEveryMs, 'beats of schedulers', () => this.#beatSchedulers(), this.#onError('beating for schedulers')),
      this.#reports.service,
      this.#heapWatch(),
      { name: 'schedulers', start: async () => {}, stop: () => this.#attempts.stopAll() },
      loop('orders', (signal) => this.#follow(signal), this.#onError('reading its orders'), growingTo(beatEveryMs)),
      { name: 'leave-taking', start: async () => {}, stop: () => this.#takeLeave() },
    ]);
  }

  #onError(doing: string): (error: unknown) => void {
    return (error) => {
      if (this.#throttle.isDue(doing, error))
        this.#options.log.warn({ err: error, doing }, 'host step failed, retrying');
    };
  }

  async #register(): Promise<void> {
    const { control, hub, version: engine, log } = this.#options;
    const memory = process.memoryUsage.rss();
    const onDemand = !this.#options.stays;
    await registerHost(control, { id: this.id, machine, pid: process.pid, engine, memory, onDemand });
    this.#heardAt = performance.now();
    this.#unsubscribe();
    this.#unsubscribe = hub.on('orders', this.id, () => this.#orders.ring());
    log.info({ host: this.id, engine }, 'host registered');
    // the launcher may be waiting for it
    hub.send('host_reports', everyone);
  }

  /** The first step of a stop, so that the launcher gives it no more tenants. */
  async #takeLeave(): Promise<void> {
    const { control, hub } = this.#options;
    this.#stopping = true;
    if (this.#lost) return;
    await within(maxGoodbyeMs, leaveSoon(control, this.id)).catch(() => {});
    hub.send('host_reports', everyone);
  }

  /** Writes its last reports, then removes its row. Without a database it gives up after `maxGoodbyeMs`. */
  async #leave(): Promise<void> {
    const { control, hub } = this.#options;
    this.#unsubscribe();
    await this.#lettingGo;
    if (this.#lost) return;
    const written = this.#reports.flush().then(() => removeHost(control, this.id));
    await within(maxGoodbyeMs, written).catch(() => {});
    hub.send('host_reports', everyone);
  }

  async #follow(signal: AbortSignal): Promise<void> {
    const id = this.id;
    const orders = await ordersFor(this.#options.control, id);
    if (signal.aborted || id !== this.id) return;
    this.#attempts.follow(this.#stopping || this.#lettingGo !== undefined ? { ...orders, orders: [] } : orders);
    this.#options.onTenants?.(this.#attempts.running.length);
    await this.#orders.wait(beatEveryMs, signal);
  }

  async #beat(): Promise<void> {
    if (this.#lost) return;
    const memory = process.memoryUsage.rss();
    if (memory <= this.#options.memoryLimit) this.#fitAt = performance.now();
    if (performance.now() - this.#fitAt > this.#patience.overMemoryMs)
      return this.#overflow('host_memory', memory, this.#options.memoryLimit);
    const { id } = this;
    try {
      const row = await this.#sendBeat(id, memory);
      this.#heardAt = performance.now();
      this.#hasLauncher = row?.launched ?? true;
      // it has registered again meanwhile, or is about to: the answer is about its former id
      if (id !== this.id || this.#lettingGo !== undefined) return;
      if (row === undefined) return await this.#recover();
      if (row.leaving) this.#obeyDismissal();
    } catch (error) {
      const aloneMs = performance.now() - this.#heardAt;
      if (aloneMs > this.#patience.aloneMs)
        this.#end({ asked: false, reason: `no control database for ${Math.round(aloneMs / 1_000)} s` });
      throw error;
    }
  }

  /** Bounds the wait, because a lost network gives no answer at all. */
  async #sendBeat(id: string, memory: number): Promise<HostAnswer | undefined> {
    const { unsaid } = this.#reports;
    const beat = beatHost(this.#options.control, { id, memory, unsaid }).then((row) => ({ row }));
    const answer = await within(this.#patience.answerMs, beat);
    if (answer === undefined) throw new Error('the control database does not answer');
    return answer.row;
  }

  async #beatSchedulers(): Promise<void> {
    if (this.#lost) return;
    const { control, statuses } = this.#options;
    const beats = this.#attempts.running.map(
      ({ tenantId, id }): SchedulerBeat => ({
        tenantId,
        id,
        ...(statuses.get(tenantId) ?? nothing),
        tally: this.#tallies.of(tenantId),
      }),
    );
    const news = this.#pace.due(beats, performance.now());
    if (news.length === 0) return;
    const write = (some: readonly SchedulerBeat[]): Promise<void> => beatSchedulers(control, this.id, some);
    const rejected = await isolateRejected(news, write, { isRejection: isStatementRejection });
    for (const error of rejected.values()) this.#onError('writing the beat of a scheduler')(error);
    this.#pace.noteWritten(news, performance.now());
  }

  /** It was written off: its tenants may run in other hosts by now, and its reports no longer count. */
  async #recover(): Promise<void> {
    if (this.#stopping) return;
    this.#options.log.warn({ host: this.id }, 'host was written off, registering again');
    this.#reports.forget();
    await this.#attempts.stopAll();
    this.#reports.forget();
    await this.#registerAgain();
  }

  #obeyDismissal(): void {
    if (this.#stopping) return;
    if (!this.#options.stays) return this.#end({ asked: true, reason: 'it was told to leave' });
    // not awaited: it continues to beat meanwhile
    this.#lettingGo ??= this.#letGo()
      .catch(this.#onError('letting go of its tenants'))
      .finally(() => (this.#lettingGo = undefined));
  }

  async #letGo(): Promise<void> {
    await this.#attempts.stopAll();
    await this.#reports.flush();
    if (this.#stopping) return;
    await removeHost(this.#options.control, this.id);
    await this.#registerAgain();
  }

  async #registerAgain(): Promise<void> {
    if (this.#stopping) return;
    this.#attempts.forget();
    this.id = newId();
    await this.#register();
    this.#orders.ring();
  }

  /** Ends the host well below the limit at which Node aborts: near it, garbage collection would delay all its tenants. */
  #heapWatch(): Service {
    const { heapLimit } = this.#options;
    let end = (): void => {};
    return {
      name: 'heap watch',
      start: async () => {
        end = observeHeap((used) => {
          if (used > heapLimit) void this.#overflow('host_heap', used, heapLimit);
        });
      },
      stop: async () => end(),
    };
  }

  /** A tenant leaks memory, and the host cannot know which one: the launcher decides which tenants it suspects. */
  async #overflow(cause: 'host_memory' | 'host_heap', used: number, limit: number): Promise<void> {
    const { log, control, hub } = this.#options;
    if (this.#lost) return;
    this.#lost = true;
    const reason: Reason = { code: 'crashed', cause, data: { usedMib: mib(used), limitMib: mib(limit) } };
    const why = formatCause(reason);
    log.error({ host: this.id, tenants: this.#attempts.running.length, reason: why }, 'host ends: out of memory');
    // sent together: in a process that runs out of memory, each round trip may take a second
    const written = Promise.all([this.#reportLoss(reason), giveUpHost(control, this.id)]);
    await within(maxGoodbyeMs, written).catch(() => {});
    hub.send('host_reports', everyone);
    this.#end({ asked: false, reason: why });
  }

  /** Reports why the schedulers that still run are about to end. */
  async #reportLoss(reason: Reason): Promise<void> {
    const { control, version: engine } = this.#options;
    const reports = this.#attempts.running.map(
      ({ tenantId, id, orderNo }): HostReport => ({ tenantId, id, orderNo, engine, phase: 'running', reason }),
    );
    if (reports.length > 0) await writeReports(control, this.id, reports);
  }

  async #write(reports: readonly HostReport[]): Promise<void> {
    if (this.#lost) return;
    await writeReports(this.#options.control, this.id, reports);
    this.#options.hub.send('host_reports', everyone);
  }

  #run(order: Order, hooks: PartHooks, signal: AbortSignal): Promise<Ending> {
    const { row, engine } = order;
    const { version, engines, addressOf, contextFor, allowPooler, poolSize, budget, limits } = this.#options;
    const data = { engine: version, wanted: engine };
    if (engine !== version) return Promise.resolve(new Ending({ code: 'starting', cause: 'wrong_host', data }));
    return runScheduler(
      {
        ...hooks,
        version,
        engines,
        allowPooler,
        poolSize,
        budget,
        address: addressOf(row),
        // with the version, so that the server's log shows which engine a connection belongs to
        application: `${connectionsOf(this.id)} ${version} ${row.name}`,
        isUnwatched: () => !this.#hasLauncher || this.#options.isElsewhere(row),
        onWanted: () => hintChanged(this.#options.hub, row.id),
        isWrittenOff: (application) => this.#wasLost(order, application),
        contextFor: (pool, over) => ({ ...contextFor(row, pool), housekeeping: this.#housekeeping.of(over) }),
        limits: limits ?? usualLimits,
        hasFailed: order.hasFailed ?? false,
      },
      signal,
    );
  }

  /** Only the tenant's last hosts count: any other holder may belong to another installation and be alive. */
  async #wasLost({ lastHosts = [] }: Order, application: string): Promise<boolean> {
    const holder = lastHosts.find((id) => application.startsWith(`${connectionsOf(id)} `));
    return holder !== undefined && (await isWrittenOff(this.#options.control, holder));
  }

  #onEnd({ row, orderNo }: Order, { code, message }: Ending): void {
    const { log, statuses } = this.#options;
    statuses.delete(row.id);
    this.#tallies.forget(row.id);
    const fields = { tenant: row.name, order: orderNo, code, reason: message };
    if (code === 'stopping' || code === 'starting') log.debug(fields, 'scheduler ended');
    else log.warn(fields, 'scheduler ended');
    this.#orders.ring();
  }
}

function mib(bytes: number): number {
  return Math.round(bytes / 2 ** 20);
}
