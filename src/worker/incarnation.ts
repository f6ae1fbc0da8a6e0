/**
 * One life of a worker, from its start to its stop. It fills its places, executes, reports, and tells the API what it
 * holds; when it leaves it
 *
 * 1. claims no more, 2. lets running tasks end for a while, 3. kills the others and gives their runs back, 4. sees its
 * reports acknowledged, 5. says that it holds nothing.
 *
 * A run that needs no execution (`none`) takes no place, so such runs are claimed by a poll of their own, many at once.
 * With its definition known it costs no promise and no timer: those of one claim go straight into one batch of reports.
 */
import {
  type ClaimAnswer,
  type ClaimedRun,
  type DefinitionKey,
  type HeartbeatAnswer,
  type HeldRun,
  mostWithout,
  type Report,
  type Signals,
  type TaskDefinition,
  wireNumber,
} from '../contract/wire.ts';
import { MillraceError } from '../errors.ts';
import { newId } from '../kernel/id.ts';
import { warnThrottled } from '../kernel/log-throttle.ts';
import { leftUntil, type Service, within } from '../kernel/service.ts';
import { failed, faulty, success } from '../runtimes/contract.ts';
import { checkpoint } from './checkpoints.ts';
import { Claimer } from './claimer.ts';
import { Client, retryBriefly, isTenantAway, isWorkerRefused, Outage } from './client.ts';
import { DefinitionCache } from './definition-cache.ts';
import { type Executable, Executor, reportOf } from './executor.ts';
import { makeHeart } from './heartbeat.ts';
import { type Hold, Holdings } from './holdings.ts';
import { LogShippers } from './output/log-shippers.ts';
import { CacheInvalidation } from './cache-invalidation.ts';
import { handOver, keepPlaceMs, type Lanes } from './hand-over.ts';
import { Places } from './places.ts';
import { Reporter, type ReporterOptions } from './reporter.ts';
import { RuntimeWatch } from './runtimes/runtime-watch.ts';
import type { WorkerSettings } from './settings.ts';

/** How long each step after the drain may take. Without a deadline, all of them take 2.8 s at most. */
const leave = { killMs: 1_800, logsMs: 200, reportsMs: 500, farewellMs: 300 } as const;
/**
 * What each step leaves until the deadline to the steps after it. A killed task gets SIGKILL 1 s after SIGTERM, so that 1.2 s
 * suffice for it.
 */
const reserve = { drainMs: 1_800, killMs: 600, logsMs: 500, reportsMs: 200 } as const;

/** How many runs without a place one poll asks for: what one claim hands out at most. */
export const quickBatch = 1_000;
/**
 * Reports that wait to be acknowledged. With so many of a tenant no more of its runs are taken, be they quick or not; those
 * of others are. With so many of all tenants none are: memory has an end, and so has a heartbeat, which lists them. Quick
 * ones leave room for the others.
 */
export const mostUnsettled = {
  ofTenant: { quick: 2 * quickBatch, placed: 5_000 },
  ofAll: { quick: 12_000, placed: 14_000 },
} as const;

export class Incarnation {
  readonly #settings: WorkerSettings;
  #identity: { readonly worker: string; readonly incarnation: number };
  readonly #client: Client;
  readonly #holdings = new Holdings();
  readonly #definitions: DefinitionCache;
  readonly #shipper: LogShippers;
  readonly #reporter: Reporter;
  readonly #executor: Executor;
  readonly #claimers: readonly Claimer[];
  readonly #heart: Service;
  readonly #runtimes: RuntimeWatch;
  readonly #over = new AbortController();
  #draining = false;
  /** Runs being executed, and the places that some of them take. */
  #running = 0;
  readonly #places: Places;
  #onIdle: (() => void) | undefined;
  readonly #invalidation: CacheInvalidation;

  constructor(settings: WorkerSettings) {
    const { log, time, taskUrl, logLimitBytes } = settings;
    const now = (): number => time.now();
    this.#settings = settings;
    this.#places = new Places(settings.maxTasks);
    this.#identity = { worker: settings.id, incarnation: settings.incarnation() };
    this.#client = new Client({ ...settings, outage: new Outage(log, now) });
    this.#definitions = new DefinitionCache({
      fetch: (keys) => this.#client.definitions({ ...this.#identity, items: [...keys] }, this.#over.signal),
      now,
    });
    this.#invalidation = new CacheInvalidation(this.#definitions);
    this.#shipper = this.#makeShipper(now);
    this.#reporter = this.#makeReporter();
    this.#runtimes = this.#makeRuntimes();
    const shipper = this.#shipper;
    this.#executor = new Executor({
      stash: (hold, names) => this.#stash(hold, names),
      runtimes: this.#runtimes,
      shipper,
      taskUrl,
      logLimitBytes,
      now,
    });
    this.#claimers = [...this.#makeClaimer({ takesPlace: false }), ...this.#makeClaimer({ takesPlace: true })];
    this.#heart = this.#makeHeart();
  }

  async start(): Promise<void> {
    await this.#runtimes.start();
    await this.#heart.start(); // the first one that is heard starts the claims
  }

  /** Claims no more; tasks that run go on. */
  quiet(): void {
    this.#draining = true;
    for (const claimer of this.#claimers) claimer.quiet();
  }

  async stop(deadlineMs = Number.POSITIVE_INFINITY): Promise<void> {
    const atMost = (ms: number, reserveMs: number): number => Math.min(ms, leftUntil(deadlineMs - reserveMs));
    this.quiet();
    this.#holdings.releaseOutliving(); // to wait for them gains nothing
    await this.#idleWithin(atMost(this.#settings.drainMs, reserve.drainMs));
    this.#holdings.killAll('draining');
    await this.#idleWithin(atMost(leave.killMs, reserve.killMs));
    await Promise.all(this.#claimers.map((claimer) => claimer.stop()));
    this.#over.abort();
    this.#shipper.stop();
    await this.#idleWithin(atMost(leave.logsMs, reserve.logsMs));
    await within(atMost(leave.reportsMs, reserve.reportsMs), this.#reporter.flush());
    this.#reporter.stop();
    await this.#heart.stop();
    await this.#beat([], atMost(leave.farewellMs, 0)).catch(() => {}); // the client logs it; the leases expire by themselves
    await this.#runtimes.stop(deadlineMs);
  }

  #accept(runs: readonly ClaimedRun[], takesPlace: boolean): void {
    if (runs.length === 0) return;
    checkpoint('worker.claimed');
    const startedAt = new Date(this.#settings.time.now()).toISOString();
    const reports: Report[] = [];
    for (const run of runs) {
      const hold = this.#holdings.add(run);
      if (this.#draining) hold.kill('draining');
      const quick = this.#quick(hold, run.node ?? this.#definitions.peek(run), startedAt);
      if (quick) reports.push(quick);
      else void this.#run(hold, takesPlace);
    }
    this.#reporter.add(reports);
  }

  /** The report of a run that needs no execution. */
  #quick(hold: Hold, executable: Executable | undefined, startedAt: string): Report | undefined {
    if (hold.killed === 'draining') return reportOf(hold, failed('its worker was being stopped'), null);
    if (executable?.runtime.kind !== 'none' || this.#runtimes.find('none') === undefined) return undefined;
    hold.settle();
    return reportOf(hold, success, startedAt);
  }

  async #run(hold: Hold, takesPlace: boolean): Promise<void> {
    let placed = takesPlace;
    const leavePlace = (): void => {
      if (placed) this.#places.leave();
      placed = false;
    };
    this.#running++;
    if (placed) this.#places.take();
    let late: NodeJS.Timeout | undefined;
    const report = await this.#execute(hold, () => {
      late ??= setTimeout(() => {
        leavePlace();
        this.#roomChanged();
      }, keepPlaceMs);
    });
    clearTimeout(late);
    checkpoint('worker.ended');
    leavePlace();
    if (report) this.#reporter.add([report]);
    else this.#holdings.remove(hold.run);
    this.#running--;
    // the report, which leaves first, may take the place along
    queueMicrotask(() => this.#roomChanged());
    if (this.#running === 0) this.#onIdle?.();
  }

  async #execute(hold: Hold, onEnded: () => void): Promise<Report | undefined> {
    try {
      const executable = await this.#executable(hold);
      const startedAt = new Date(this.#settings.time.now()).toISOString();
      if (executable)
        return this.#quick(hold, executable, startedAt) ?? (await this.#executor.execute(hold, executable, onEnded));
      const { task, version } = hold.run;
      return reportOf(hold, faulty(`its definition (task ${task}, version ${version}) does not exist any more`), null);
    } catch (error) {
      if (isTenantAway(error)) hold.kill('unserved');
      const told = error instanceof Error ? error.message : String(error);
      return reportOf(hold, faulty(`the worker could not run it: ${told}`), null);
    }
  }

  /** A node comes with its work. */
  async #executable(hold: Hold): Promise<Executable | undefined> {
    const { run } = hold;
    return run.node ?? (await retryBriefly(() => this.#definition(hold, run), hold.signal));
  }

  #stash({ run: { tenant, run, lease }, signal }: Hold, names: string[]): Promise<Map<string, Buffer>> {
    return this.#client.secrets({ ...this.#identity, tenant, run, lease, names }, signal);
  }

  /** Waits for it only as long as the run is wanted. */
  #definition(hold: Hold, key: DefinitionKey): Promise<TaskDefinition | undefined> {
    const known = this.#definitions.peek(key);
    if (known) return Promise.resolve(known);
    return new Promise((resolve, reject) => {
      hold.signal.addEventListener('abort', () => reject(new Error('it was stopped before it began')), { once: true });
      this.#definitions.get(key).then(resolve, reject);
    });
  }

  #hear(signals: Signals): void {
    const { cancel, lost } = signals;
    for (const held of cancel) this.#holdings.find(held)?.kill('cancelled');
    for (const held of lost) this.#lose(held);
    this.#invalidation.apply(signals);
  }

  #roomChanged(): void {
    for (const claimer of this.#claimers) claimer.roomChanged();
  }

  /** How many more runs fit: places that are free, or for runs that take none whatever one claim gives. */
  #free(takesPlace: boolean): number {
    const most = mostUnsettled.ofAll[takesPlace ? 'placed' : 'quick'];
    if (this.#reporter.unsettled + this.#running >= most) return 0;
    if (this.#kinds(takesPlace).length === 0) return 0;
    return takesPlace ? this.#places.free : quickBatch;
  }

  /** The kinds of work that are claimed now. */
  #kinds(takesPlace: boolean): string[] {
    return this.#runtimes.available.filter((kind) => needsPlace(kind) === takesPlace);
  }

  #without(takesPlace: boolean): string[] {
    return this.#reporter.tenantsWith(mostUnsettled.ofTenant[takesPlace ? 'placed' : 'quick']).slice(0, mostWithout);
  }

  #beat(holds: readonly HeldRun[], withinMs: number, signal?: AbortSignal): Promise<HeartbeatAnswer> {
    const { name, addr, version, maxTasks, queues } = this.#settings;
    const { available, unavailable } = this.#runtimes;
    const places = this.#draining ? 0 : maxTasks; // nobody is to wait for those of one that takes no more
    const self = { ...this.#identity, name, addr, version, places, taken: this.#places.taken };
    const served = { runtimes: [...available], unavailable, queues: [...queues] };
    return this.#client.heartbeat(
      { ...self, ...served, holds: [...holds], seen: this.#invalidation.seen },
      withinMs,
      signal,
    );
  }

  /**
   * An id that the server refuses is given up: another process has taken it over, or its last incarnation was no time.
   * What was held under it is lost to this worker, and comes back when its lease runs out.
   */
  #heal(error: unknown): never {
    if (isWorkerRefused(error)) {
      const { log, onNewIdentity } = this.#settings;
      const refused = this.#identity.worker;
      this.#identity = { worker: newId(), incarnation: 1 };
      const { worker: id, incarnation } = this.#identity;
      log.warn({ refused, worker: id, why: error.message }, 'worker id refused; continuing under a new id');
      onNewIdentity({ id, incarnation });
      for (const held of this.#holdings.list()) this.#lose(held);
    }
    throw error;
  }

  #lose(held: HeldRun): void {
    this.#holdings.find(held)?.kill('lost');
    this.#holdings.remove(held);
  }

  async #idleWithin(ms: number): Promise<void> {
    if (this.#running === 0) return;
    await within(ms, new Promise<void>((resolve) => (this.#onIdle = resolve)));
  }

  /** Errors of the API are logged by the client. Others are a fault of this program. */
  #logBug(message: string): (error: unknown) => void {
    const logThrottled = warnThrottled(this.#settings.log, message);
    return (error) => {
      if (!(error instanceof MillraceError)) logThrottled(error);
    };
  }

  /** Claims runs that take a place, or those that do not. None if no runtime is for such runs. */
  #makeClaimer({ takesPlace }: { takesPlace: boolean }): Claimer[] {
    const { pollMs, queues } = this.#settings;
    if (!this.#runtimes.kinds.some((kind) => needsPlace(kind) === takesPlace)) return [];
    const claimer = new Claimer({
      poll: async (wish, signal): Promise<ClaimAnswer> => {
        const lanes = { runtimes: this.#kinds(takesPlace), queues: [...queues], wire: wireNumber };
        const settle = takesPlace ? this.#places.poll(wish.free) : () => {};
        const request = { ...this.#identity, ...wish, ...lanes, seen: this.#invalidation.seen };
        return await this.#client.claim(request, signal).finally(settle);
      },
      free: () => this.#free(takesPlace),
      without: () => this.#without(takesPlace),
      take: (answer) => {
        this.#hear(answer);
        this.#accept(answer.runs, takesPlace);
      },
      waitMs: pollMs,
      onError: this.#logBug('claim failed; retrying'),
    });
    return [claimer];
  }

  #makeHeart(): Service {
    const { log, heartbeatMs } = this.#settings;
    return makeHeart({
      beat: (holds, withinMs, signal) =>
        this.#beat(holds, withinMs, signal).catch((error: unknown) => this.#heal(error)),
      holds: () => this.#holdings.list(),
      hear: (signals) => this.#hear(signals),
      onFirst: () => {
        if (!this.#draining) for (const claimer of this.#claimers) void claimer.start();
      },
      onLate: (ms) =>
        log.warn(
          { forMs: Math.round(ms), running: this.#running },
          'process was suspended, or a function blocked it; its runs may have been handed out again',
        ),
      onError: this.#logBug('A heartbeat failed; it is tried again'),
      intervalMs: heartbeatMs,
    });
  }

  #makeRuntimes(): RuntimeWatch {
    const { runtimes, runtimeTimes: times, log } = this.#settings;
    return new RuntimeWatch({
      runtimes: runtimes(() => this.#identity),
      times,
      log,
      onChange: () => this.#roomChanged(),
    });
  }

  #makeHandOver(): ReporterOptions['send'] {
    const lanesOf = (takesPlace: boolean): Lanes | undefined => {
      if (this.#draining || this.#free(takesPlace) <= 0 || this.#without(takesPlace).length > 0) return undefined;
      return { runtimes: this.#kinds(takesPlace), queues: [...this.#settings.queues], wire: wireNumber };
    };
    return handOver({
      places: this.#places,
      lanesOf,
      send: (message, signal) => this.#client.report({ ...this.#identity, ...message }, signal),
      accept: (runs, takesPlace) => this.#accept(runs, takesPlace),
      now: () => performance.now(),
    });
  }

  #makeReporter(): Reporter {
    const { log } = this.#settings;
    return new Reporter({
      send: this.#makeHandOver(),
      onSettled: (reports) => {
        for (const report of reports) this.#holdings.remove(report);
        this.#roomChanged();
      },
      onRefused: (report, error) =>
        log.error({ err: error, run: report.run }, 'report rejected; its run will be handed out again'),
      onAside: ({ tenant, detail }) => log.warn({ tenant, detail }, 'tenant takes no reports now; they are retried'),
    });
  }

  #makeShipper(now: () => number): LogShippers {
    const { log } = this.#settings;
    return new LogShippers({
      send: (chunks, signal) => this.#client.logs({ ...this.#identity, chunks }, signal),
      onDropped: (error, chunks) => log.error({ err: error, chunks }, 'output rejected and lost'),
      now,
    });
  }
}

/** Work of kind `none` is nothing to execute. */
function needsPlace(kind: string): boolean {
  return kind !== 'none';
}
