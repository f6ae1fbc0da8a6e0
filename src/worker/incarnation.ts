/**
 * One incarnation of a worker, from its start to its stop. It fills its places, executes runs, reports results, and sends
 * heartbeats. To stop, it
 *
 * 1. claims no more, 2. waits a while for running tasks, 3. kills the others and returns their runs, 4. waits until its reports
 * are acknowledged, 5. reports that it holds nothing.
 *
 * A run without execution (`none`) takes no place, so such runs have a poll of their own, many at once. If its definition is
 * cached, it needs no promise and no timer: the runs of one claim go directly into one batch of reports.
 */
import {
  type ClaimAnswer,
  type ClaimedRun,
  type DefinitionKey,
  type HeartbeatAnswer,
  type HeldRun,
  maxWithout,
  type Report,
  type Signals,
  type TaskDefinition,
  wireNumber,
} from '../contract/wire.ts';
import { MillraceError } from '../errors.ts';
import { groupBy } from '../kernel/group-by.ts';
import { newId } from '../kernel/id.ts';
import { warnThrottled } from '../kernel/log-throttle.ts';
import { leftUntil, type Service, within } from '../kernel/service.ts';
import { failed, faulty, success } from '../runtimes/contract.ts';
import { checkpoint } from './checkpoints.ts';
import { Claimer } from './claimer.ts';
import { Client, retryBriefly, isTenantAway, isWorkerRefused, Outage } from './client.ts';
import { DefinitionCache } from './definition-cache.ts';
import { type Executable, Executor, reportOf } from './executor.ts';
import { makeHeartbeat } from './heartbeat.ts';
import { type Hold, Holdings } from './holdings.ts';
import { LogShippers } from './output/log-shippers.ts';
import { CacheInvalidation } from './cache-invalidation.ts';
import { handOver, keepPlaceMs, type Lanes } from './hand-over.ts';
import { leave, maxUnsettled, needsPlace, quickBatch, reserve } from './limits.ts';
import { Places } from './places.ts';
import { Reporter, type ReporterOptions } from './reporter.ts';
import { RuntimeWatch } from './runtimes/runtime-watch.ts';
import type { WorkerSettings } from './settings.ts';

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
  readonly #heartbeat: Service;
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
    this.#heartbeat = this.#makeHeartbeat();
  }

  async start(): Promise<void> {
    await this.#runtimes.start();
    await this.#heartbeat.start(); // the first answered heartbeat starts the claims
  }

  /** Claims no more; running tasks continue. */
  quiet(): void {
    this.#draining = true;
    for (const claimer of this.#claimers) claimer.quiet();
  }

  async stop(deadlineMs = Number.POSITIVE_INFINITY): Promise<void> {
    const atMost = (ms: number, reserveMs: number): number => Math.min(ms, leftUntil(deadlineMs - reserveMs));
    this.quiet();
    this.#holdings.releaseOutliving(); // waiting for them has no use
    await this.#idleWithin(atMost(this.#settings.drainMs, reserve.drainMs));
    this.#holdings.killAll('draining');
    await this.#idleWithin(atMost(leave.killMs, reserve.killMs));
    await Promise.all(this.#claimers.map((claimer) => claimer.stop()));
    this.#over.abort();
    this.#shipper.stop();
    await this.#idleWithin(atMost(leave.logsMs, reserve.logsMs));
    await within(atMost(leave.reportsMs, reserve.reportsMs), this.#reporter.flush());
    this.#reporter.stop();
    await this.#heartbeat.stop();
    await this.#beat([], atMost(leave.farewellMs, 0)).catch(() => {}); // the client logs it; the leases expire by themselves
    await this.#runtimes.stop(deadlineMs);
  }

  #accept(runs: readonly ClaimedRun[], takesPlace: boolean, isLate = false): void {
    if (runs.length === 0) return;
    checkpoint('worker.claimed');
    const holds = runs.map((run) => this.#holdings.add(run));
    if (this.#draining || isLate) for (const hold of holds) hold.kill('draining');
    if (takesPlace) return this.#begin(holds, takesPlace);
    const isUnknown = ({ run, killed }: Hold): boolean =>
      run.node === undefined && killed === undefined && !this.#definitions.has(run);
    const unknown = groupBy(holds.filter(isUnknown), ({ run }) => run.tenant);
    const known = unknown.size === 0 ? holds : holds.filter((hold) => !isUnknown(hold));
    this.#begin(known, takesPlace);
    for (const some of unknown.values()) void this.#beginUnknown(some);
  }

  /**
   * Runs of a tenant that take no place, and whose definitions are not cached. The definitions are fetched together, and the runs
   * begin together, without a promise and a signal for each.
   */
  async #beginUnknown(holds: readonly Hold[]): Promise<void> {
    this.#running += holds.length;
    await this.#definitions.load(holds.flatMap(({ run }) => (run.node === undefined ? [run] : [])));
    this.#running -= holds.length;
    this.#begin(holds, false);
    if (this.#running === 0) this.#onIdle?.();
  }

  #begin(holds: readonly Hold[], takesPlace: boolean): void {
    const startedAt = new Date(this.#settings.time.now()).toISOString();
    const reports: Report[] = [];
    for (const hold of holds) {
      const quick = this.#quick(hold, hold.run.node ?? this.#definitions.peek(hold.run), startedAt);
      if (quick) reports.push(quick);
      else void this.#run(hold, takesPlace);
    }
    this.#reporter.add(reports);
  }

  /** The report of a run without execution. */
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
    // the report is sent first, and may offer the place
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
      const message = error instanceof Error ? error.message : String(error);
      return reportOf(hold, faulty(`the worker could not run it: ${message}`), null);
    }
  }

  /** A node comes with its work; a definition is fetched. */
  async #executable(hold: Hold): Promise<Executable | undefined> {
    const { run } = hold;
    return run.node ?? (await retryBriefly(() => this.#definition(hold, run), hold.signal));
  }

  #stash({ run: { tenant, run, lease }, signal }: Hold, names: string[]): Promise<Map<string, Buffer>> {
    return this.#client.secrets({ ...this.#identity, tenant, run, lease, names }, signal);
  }

  /** Stops waiting when the run is killed. */
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

  /** The number of runs that fit: free places, or for runs without a place the maximum of one claim. */
  #free(takesPlace: boolean): number {
    const max = maxUnsettled.ofAll[takesPlace ? 'placed' : 'quick'];
    if (this.#reporter.unsettled + this.#running >= max) return 0;
    if (this.#kinds(takesPlace).length === 0) return 0;
    return takesPlace ? this.#places.free : quickBatch;
  }

  /** The kinds of work that are claimed now. */
  #kinds(takesPlace: boolean): string[] {
    return this.#runtimes.available.filter((kind) => needsPlace(kind) === takesPlace);
  }

  #without(takesPlace: boolean): string[] {
    return this.#reporter.tenantsWith(maxUnsettled.ofTenant[takesPlace ? 'placed' : 'quick']).slice(0, maxWithout);
  }

  #beat(holds: readonly HeldRun[], withinMs: number, signal?: AbortSignal): Promise<HeartbeatAnswer> {
    const { name, addr, version, maxTasks, queues } = this.#settings;
    const { available, unavailable } = this.#runtimes;
    const places = this.#draining ? 0 : maxTasks; // a stopping worker takes no more runs
    const self = { ...this.#identity, name, addr, version, places, taken: this.#places.taken };
    const served = { runtimes: [...available], unavailable, queues: [...queues] };
    return this.#client.heartbeat(
      { ...self, ...served, holds: [...holds], seen: this.#invalidation.seen },
      withinMs,
      signal,
    );
  }

  /**
   * Takes a new id if the server refuses the present one: another process uses it, or its last incarnation was not a valid time. The
   * runs that were held under the old id are lost to this worker, and return when their lease expires.
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

  /** The client logs errors of the API. Other errors are bugs of this program. */
  #logBug(message: string): (error: unknown) => void {
    const logThrottled = warnThrottled(this.#settings.log, message);
    return (error) => {
      if (!(error instanceof MillraceError)) logThrottled(error);
    };
  }

  /** A claimer for runs that take a place, or for those that do not. None if no runtime serves such runs. */
  #makeClaimer({ takesPlace }: { takesPlace: boolean }): Claimer[] {
    const { pollMs, queues } = this.#settings;
    if (!this.#runtimes.kinds.some((kind) => needsPlace(kind) === takesPlace)) return [];
    /** Called when the runs of an answer take their places, and not before: a report might offer the places again. */
    const settles = new WeakMap<ClaimAnswer, () => void>();
    const claimer = new Claimer({
      poll: (wish, signal): Promise<ClaimAnswer> => {
        const lanes = { runtimes: this.#kinds(takesPlace), queues: [...queues], wire: wireNumber };
        const settle = takesPlace ? this.#places.poll(wish.free) : () => {};
        const request = { ...this.#identity, ...wish, ...lanes, seen: this.#invalidation.seen };
        const asking = this.#client.claim(request, signal);
        asking.then((answer) => settles.set(answer, settle), settle);
        return asking;
      },
      free: () => this.#free(takesPlace),
      without: () => this.#without(takesPlace),
      take: (answer) => {
        settles.get(answer)?.();
        this.#hear(answer);
        this.#accept(answer.runs, takesPlace);
      },
      waitMs: pollMs,
      onError: this.#logBug('claim failed, retrying'),
    });
    return [claimer];
  }

  #makeHeartbeat(): Service {
    const { log, heartbeatMs } = this.#settings;
    return makeHeartbeat({
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
      onError: this.#logBug('heartbeat failed, retrying'),
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
      accept: (runs, { takesPlace, isLate }) => this.#accept(runs, takesPlace, takesPlace && isLate),
      onFree: () => this.#roomChanged(),
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
      onAside: ({ tenant, detail }) => log.warn({ tenant, detail }, 'tenant accepts no reports, retrying'),
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
