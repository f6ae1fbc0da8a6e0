/**
 * The place where workers wait for runs. The polls of many workers become one claim per tenant, and tenants with ready runs
 * share the free places. A poll ends with runs, with a signal for its worker, or when its time is up.
 *
 * 1. Only tenants that have ready runs are asked. Hints announce them; one statement per second on the control database finds
 *    lost hints. Tenants whose schedulers are silent are asked to be sure, a few at a time.
 * 2. Tenants are asked at the same time, each for its share of the places, which are kept for it while it may answer in time.
 *    Runs that a slow tenant returns later go to the next poll of the worker that they were claimed for, or back to the tenant.
 * 3. Places are lent to the report desk (`lend`): the commit that applies a tenant's reports then hands out the runs that they
 *    make ready. For the others this is a claim of the tenant like any other. The tenant comes last, behind those that wait.
 *
 * `choose.ts` decides, this class acts: it keeps places, claims, hands out runs, and records how each tenant answered. Its data
 * about tenants is in `tenant-record.ts`, its data about polls in `pollers.ts`.
 *
 * A claim (`Ask`) under way:
 *   keeps places → keeps none  when the patience for its tenant is over; the others get the places
 *   any          → over        when the tenant has answered or failed, or after 30 s without either
 */
import { largestClaim, largestHandOver, type Poll as EnginePoll } from '../../contract/engine.ts';
import { lanesOf } from '../../contract/lane.ts';
import { leaseTimes } from '../../contract/lease-times.ts';
import type { LocalTasks } from '../../contract/local-tasks.ts';
import type { ClaimedRun, Report } from '../../contract/wire.ts';
import { checkpoint } from '../checkpoints.ts';
import { groupBy } from '../../kernel/group-by.ts';
import { LogThrottle } from '../../kernel/log-throttle.ts';
import type { Log } from '../../kernel/log.ts';
import { every, type Service, within } from '../../kernel/service.ts';
import type { Db } from '../../kernel/sql.ts';
import { isUnserved, type Loader, unlessGone } from '../../loader/loader.ts';
import type { HeartbeatTenants } from '../desks/heartbeat-tenants.ts';
import type { BatchTurns } from './batch-turns.ts';
import { Candidates } from './candidates.ts';
import { type Ask, choose, limitPlaces, sumPlaces } from './choose.ts';
import { allowedLanes, type Claim, nameSetOf, tenantsOf } from './claim-rules.ts';
import { nameOf, Pollers, type WaitingPoll } from './pollers.ts';
import type { TenantRecord } from './tenant-record.ts';
import type { TenantRecords } from './tenant-records.ts';

export const claimTimes = {
  /** The interval of the search for lost hints, and of deleting old records. */
  sweepMs: 1_000,
  /** A claim without an answer after this time counts as failed: its tenant may be asked again. */
  hopelessMs: 30_000,
  /** How long places that come with a report wait for its answer. As long as the patience for a tenant that is known. */
  reportPlacesMs: 100,
  /** How long `stop` waits for claims under way. */
  windUpMs: 1_000,
};

export interface ClaimDeskOptions {
  readonly loader: Loader;
  readonly control: Db;
  readonly heartbeatTenants: HeartbeatTenants;
  readonly turns: BatchTurns;
  readonly log: Log;
  readonly leaseMs: number;
  readonly localTasks?: LocalTasks;
  readonly times?: Partial<typeof claimTimes>;
  /** Called after each sweep. */
  readonly onSwept?: () => void;
}

type DeskAsk = Ask<WaitingPoll> & {
  /** The claim is part of the commit of a report. How long that takes says little about the tenant. */
  readonly isLoan?: true;
};

/** Places that come with a report. */
type ReportPlaces = Omit<Claim, 'wait_ms' | 'seen'>;

export interface OpenPlaces {
  /** Returns the runs that were given to these places. Runs that come later go to the polls of the worker. */
  readonly close: () => ClaimedRun[];
}

/** Places that the commit of a report may fill. */
export interface Loan {
  /** Polls for a tenant of this name. */
  readonly pollsOf: (tenantName: string) => EnginePoll[];
  /** A list of runs for each poll; undefined: the engine has handed none out. */
  readonly settle: (lists: readonly ClaimedRun[][] | undefined) => void;
  /** It is not known whether runs were handed out for the places. */
  readonly fail: (error: unknown) => void;
}

export class ClaimDesk {
  readonly #options: ClaimDeskOptions;
  readonly #times: typeof claimTimes;
  readonly #tenants: TenantRecords;
  readonly #candidates: Candidates;
  readonly #pollers = new Pollers();
  /** The claims under way, each with the timer of its patience. */
  readonly #asks = new Map<DeskAsk, NodeJS.Timeout>();
  #reportPolls = 0;
  readonly #underWay = new Set<Promise<void>>();
  readonly #throttle = new LogThrottle();
  readonly service: Service;

  constructor(options: ClaimDeskOptions) {
    this.#options = options;
    this.#times = { ...claimTimes, ...options.times };
    this.#tenants = options.turns.tenants;
    options.turns.onFree(() => this.#deal());
    this.#candidates = new Candidates(options.control, this.#tenants, options.log);
    const sweeping = every(
      this.#times.sweepMs,
      'claims',
      () => this.#sweep(),
      (error) => options.log.warn({ err: error }, 'sweep for ready runs failed'),
    );
    this.service = { ...sweeping, stop: () => sweeping.stop().then(() => this.#windUp()) };
  }

  /** Runs of this tenant have become ready, in these lanes or, without `lanes`, in any. */
  ready(tenantId: string, lanes?: readonly string[]): void {
    this.#tenants.hint(tenantId, performance.now(), lanes);
    this.#deal();
  }

  /** Hints may have been lost, because the server was unreachable for a while. */
  lookAgain(): void {
    this.#tenants.recheckAll(performance.now());
    this.#candidates.outdate();
    if (this.#pollers.waiting > 0) void this.#candidates.lookAnew({ atAll: true }).then(() => this.#deal());
  }

  /** This tenant was switched on or off, or is served by another engine. */
  changed(tenantId: string): void {
    this.#tenants.recheck(tenantId, performance.now());
    this.#candidates.outdate();
    if (this.#pollers.waiting > 0) void this.#candidates.lookAnew({ atAll: false }).then(() => this.#deal());
  }

  /** Waits for runs. An abort (the worker has disconnected, or there is a signal for it) ends the wait without runs. */
  claim(request: Claim, signal: AbortSignal): Promise<ClaimedRun[]> {
    return new Promise((resolve) => {
      const waitMs = Math.min(request.wait_ms, leaseTimes(this.#options.leaseMs).pollMs);
      const timer = setTimeout(() => poll.end([]), waitMs);
      const leave = (): void => poll.end([]);
      const poll = this.#makePoll(request, (runs) => {
        clearTimeout(timer);
        signal.removeEventListener('abort', leave);
        resolve(runs);
      });
      if (signal.aborted) return leave();
      signal.addEventListener('abort', leave, { once: true });
      if (this.#pollers.add(poll) && poll.free > 0) this.#welcome(poll);
    });
  }

  /**
   * Lets places that come with a report wait for runs until they are closed. A report may take long. So that the runs need not
   * wait for its answer, they go to the polls of the worker after a while, and the places get no more.
   */
  open(request: ReportPlaces): OpenPlaces {
    let received: ClaimedRun[] | undefined;
    const poll = this.#makePoll(request, (runs) => (received = runs), ` report ${++this.#reportPolls}`);
    const take = (): ClaimedRun[] => {
      if (received === undefined) poll.end([]);
      const runs = received ?? [];
      received = [];
      return runs;
    };
    const passOn = (): void => this.#pollers.give(poll, take(), performance.now());
    const timer = setTimeout(passOn, this.#times.reportPlacesMs);
    this.#pollers.add(poll);
    const isNew = this.#tenants.open(poll.laneSet, poll.lanes, performance.now());
    if (isNew) void this.#candidates.lookAtAll().then(() => this.#deal());
    return {
      close: () => {
        clearTimeout(timer);
        return take();
      },
    };
  }

  #makePoll(request: ReportPlaces, onEnd: (runs: ClaimedRun[]) => void, suffix = ''): WaitingPoll {
    const lanes = lanesOf(request);
    const { worker, incarnation, free } = request;
    const poller = { worker, incarnation, laneSet: nameSetOf(lanes) };
    const poll: WaitingPoll = {
      ...poller,
      name: nameOf(poller) + suffix,
      free,
      lanes,
      takes: tenantsOf(request),
      end: (runs) => {
        this.#pollers.remove(poll);
        onEnd(runs);
      },
    };
    return poll;
  }

  /**
   * Lends places to a tenant whose reports are about to be applied: the places that a claim would get now. Each loan must be
   * settled or fail.
   */
  lend(tenantId: string): Loan {
    const asks = this.#deal(this.#tenants.of(tenantId));
    const portions = asks.flatMap((ask) => ask.portions);
    return {
      pollsOf: (name) => this.#enginePolls(portions, name),
      settle: (lists = []) => {
        let at = 0;
        if (lists.length === 0) for (const { tenant, laneSet } of asks) this.#tenants.putBack(tenant, laneSet);
        for (const ask of asks) this.#answered(ask, lists.slice(at, (at += ask.portions.length)), { isHinted: true });
      },
      fail: (error) => {
        for (const ask of asks) this.#failed(ask, error);
      },
    };
  }

  /** A worker polls for these lanes. Disabled tenants are loaded before the first claim. */
  #welcome({ laneSet, lanes }: WaitingPoll): void {
    const isNew = this.#tenants.open(laneSet, lanes, performance.now());
    if (isNew || this.#candidates.isLate) void this.#candidates.lookAtAll().then(() => this.#deal());
    else this.#deal();
  }

  async #sweep(): Promise<void> {
    const now = performance.now();
    void this.#returnLeftOver(now - leaseTimes(this.#options.leaseMs).leftMs);
    for (const ask of this.#asks.keys()) if (now - ask.atMs > this.#times.hopelessMs) this.#end(ask);
    this.#tenants.deleteExpired(now);
    if (this.#pollers.waiting > 0) {
      await this.#candidates.lookAtAll();
      this.#deal();
    }
    this.#options.onSwept?.();
  }

  /**
   * Asks tenants with ready runs for the free places. `borrower`: a tenant that may get places as well; its share is returned,
   * because the caller makes that claim.
   */
  #deal(borrower?: TenantRecord): DeskAsk[] {
    const tenants = this.#tenants;
    const lent: DeskAsk[] = [];
    for (const [laneSet, free] of this.#pollers.free()) {
      const now = performance.now();
      const queue = tenants.queueOf(laneSet);
      const { asks, postponed } = choose(borrower === undefined ? queue : new Set([...queue, borrower]), free, {
        laneSet,
        now,
        asks: this.#asks.keys(),
        isConnecting: this.#options.loader.isBusy,
        isOff: (tenantId) => this.#candidates.isOff(tenantId),
        hasOthersAtWork: (tenant) => tenants.hasOthersAtWork(tenant, now),
      });
      for (const { turn } of postponed) if (turn !== undefined) turn.isWanted = true;
      for (const ask of asks) {
        const isLent = ask.tenant === borrower;
        this.#begin(isLent ? limitLoan(ask) : ask, isLent ? (each) => lent.push(each) : (each) => this.#ask(each));
      }
    }
    return lent;
  }

  #begin(ask: DeskAsk, make: (ask: DeskAsk) => void): void {
    const patience = setTimeout(() => this.#overdue(ask), ask.patienceMs);
    this.#asks.set(ask, patience);
    ask.tenant.asks.set(ask.laneSet, ask);
    if (ask.keepsPlaces) this.#pollers.keep(ask.portions);
    this.#tenants.take(ask.tenant, ask.laneSet, ask.atMs);
    make(ask);
  }

  #end(ask: DeskAsk): void {
    clearTimeout(this.#asks.get(ask));
    this.#asks.delete(ask);
    if (ask.tenant.asks.get(ask.laneSet) === ask) ask.tenant.asks.delete(ask.laneSet);
  }

  #ask(ask: DeskAsk): void {
    const asking = this.#claimOf(ask).then(
      (lists) => this.#answered(ask, lists, { isHinted: false }),
      (error: unknown) => this.#failed(ask, error),
    );
    this.#underWay.add(asking);
    void asking.finally(() => this.#underWay.delete(asking));
  }

  /**
   * `lists`: one per portion; undefined: the tenant does not exist. `isHinted`: the engine sends a hint if runs are left. Without
   * that, a tenant that filled all places may have more runs, and one that did not has none left.
   */
  #answered(ask: DeskAsk, lists: readonly ClaimedRun[][] | undefined, { isHinted }: { isHinted: boolean }): void {
    const { tenant, laneSet, portions } = ask;
    if (lists === undefined) this.#tenants.delete(tenant);
    else this.#hand(ask, lists);
    const isFull = countRuns(lists ?? []) >= Math.min(sumPlaces(portions), largestClaim);
    if (isFull && !isHinted) this.#tenants.putBack(tenant, laneSet);
    this.#release(ask);
    this.#end(ask);
    this.#deal();
  }

  #failed(ask: DeskAsk, error: unknown): void {
    this.#release(ask);
    this.#noteFailure(ask, error);
    this.#end(ask);
    this.#deal();
  }

  /** An unavailable tenant is asked again after the next hint. The launcher reports why it is unavailable. */
  #noteFailure({ tenant, laneSet, atMs, portions, isLoan }: DeskAsk, error: unknown): void {
    if (!isLoan) tenant.failed(performance.now());
    if (isUnserved(error)) return this.#tenants.dropUnlessHinted(tenant, atMs);
    // only the answer may be lost: the workers' heartbeats will show that they do not hold these runs
    for (const { poll } of portions) this.#options.heartbeatTenants.note(poll.worker, tenant.id);
    this.#tenants.putBack(tenant, laneSet);
    if (this.#throttle.isDue(tenant.id, error))
      this.#options.log.warn({ err: error, tenant: tenant.id }, 'claim failed, retrying');
  }

  /** One list per portion; undefined: the tenant does not exist. */
  #claimOf({ tenant, laneSet, portions }: DeskAsk): Promise<ClaimedRun[][] | undefined> {
    const { loader, turns } = this.#options;
    const claim = async (): Promise<ClaimedRun[][] | undefined> => {
      const row = await loader.byId(tenant.id).catch(unlessGone);
      if (row === undefined) return undefined;
      return loader.use(row.id, ({ engine, ctx }) => {
        checkpoint('claim.ask');
        return engine.runs.claim(ctx, this.#enginePolls(portions, row.name));
      });
    };
    return turns.claim({ tenant, laneSet, places: sumPlaces(portions) }, claim, (lists) => countRuns(lists ?? []));
  }

  /** The polls as they are passed to the engine of a tenant with this name. */
  #enginePolls(portions: DeskAsk['portions'], name: string): EnginePoll[] {
    return portions.map(({ poll: { worker, incarnation, lanes }, places: free }) => {
      return { worker, incarnation, free, lanes: allowedLanes(lanes, name, this.#options.localTasks) };
    });
  }

  /** The patience for this tenant is over: the other tenants get its places. */
  #overdue(ask: DeskAsk): void {
    if (!ask.isLoan) ask.tenant.isOverdue(performance.now());
    this.#release(ask);
    this.#deal();
  }

  #release(ask: DeskAsk): void {
    if (ask.keepsPlaces) this.#pollers.release(ask.portions);
    ask.keepsPlaces = false;
  }

  #hand({ tenant, portions, atMs, patienceMs, isLoan }: DeskAsk, lists: readonly ClaimedRun[][]): void {
    const now = performance.now();
    if (now - atMs < patienceMs) tenant.answeredInTime(now);
    else if (!isLoan) tenant.answeredLate(now);
    if (countRuns(lists) > 0) checkpoint('claim.made');
    portions.forEach(({ poll }, i) => {
      const runs = lists[i] ?? [];
      for (const id of new Set(runs.map((run) => run.tenant))) this.#options.heartbeatTenants.note(poll.worker, id);
      this.#pollers.give(poll, runs, now);
    });
  }

  /** Returns runs that no poll has fetched. Otherwise they would count as lost by a worker that never had them. */
  async #returnLeftOver(beforeMs: number): Promise<void> {
    const old = this.#pollers.takeLeftBefore(beforeMs);
    await Promise.all([...groupBy(old, (run) => run.tenant)].map(([tenant, runs]) => this.#return(tenant, runs)));
  }

  /** Called when no worker polls any more: claimed runs are returned at once. */
  async #windUp(): Promise<void> {
    const { windUpMs } = this.#times;
    await within(windUpMs, Promise.all(this.#underWay));
    await within(windUpMs, this.#returnLeftOver(Number.POSITIVE_INFINITY));
  }

  async #return(tenant: string, runs: readonly ClaimedRun[]): Promise<void> {
    try {
      await this.#options.loader.use(tenant, ({ engine, ctx }) => engine.runs.report(ctx, runs.map(returnOf)));
    } catch (error) {
      this.#options.log.warn({ err: error, tenant }, 'returning runs failed; they will count as lost');
    }
  }
}

function countRuns(lists: readonly (readonly ClaimedRun[])[]): number {
  return lists.reduce((sum, runs) => sum + runs.length, 0);
}

function limitLoan(ask: DeskAsk): DeskAsk {
  return { ...ask, portions: limitPlaces(ask.portions, largestHandOver), isLoan: true };
}

function returnOf({ tenant, run, lease }: ClaimedRun): Report {
  return { tenant, run, lease, state: 'returned', reason: null, exit_code: null, started_at: null };
}
