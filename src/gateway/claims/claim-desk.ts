/**
 * Where workers wait for runs. The polls of many workers become one claim per tenant, and tenants with ready runs share the
 * free places. A poll ends with runs, with a signal for its worker, or when its time is up.
 *
 * 1. We ask only tenants that have ready runs. Hints announce them; for lost hints there is one statement on the control
 *    database each second. Only tenants whose schedulers are silent are asked to be sure, a few at a time.
 * 2. Tenants are asked side by side, each for its share of the places, which are kept for it while it may answer in time.
 *    What a slow tenant gives at last goes to the next poll of the worker that it was asked for, or back to the tenant.
 *
 * `choose.ts` decides, this class acts: it keeps places, claims, hands out, and notes how each tenant answered. What it
 * knows of tenants is in `tenant-record.ts`, what it knows of polls in `pollers.ts`.
 *
 * A claim (`Ask`) under way:
 *   keeps places → keeps none  when the patience for its tenant is over; the others get the places
 *   any          → over        when the tenant has answered or failed, or after 30 s without either
 */
import { createHash } from 'node:crypto';
import { largestClaim, type Poll as EnginePoll } from '../../contract/engine.ts';
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
import type { Servings } from '../desks/servings.ts';
import type { BatchTurns } from './batch-turns.ts';
import { Candidates } from './candidates.ts';
import { type Ask, choose, sumPlaces } from './choose.ts';
import { allowedLanes, type Claim, tenantsOf } from './claim-rules.ts';
import { nameOf, Pollers, type WaitingPoll } from './pollers.ts';
import type { TenantRecords } from './tenant-records.ts';

export const claimTimes = {
  /** How often lost hints are looked for, and old records deleted. */
  sweepMs: 1_000,
  /** A claim without an answer for this long gets none: its tenant may be asked again. */
  hopelessMs: 30_000,
  /** How long the end waits for claims that are under way. */
  windUpMs: 1_000,
};

export interface ClaimDeskOptions {
  readonly loader: Loader;
  readonly control: Db;
  readonly servings: Servings;
  readonly turns: BatchTurns;
  readonly log: Log;
  readonly leaseMs: number;
  readonly localTasks?: LocalTasks;
  readonly times?: Partial<typeof claimTimes>;
  /** Called after each sweep. */
  readonly onSwept?: () => void;
}

type DeskAsk = Ask<WaitingPoll>;

export class ClaimDesk {
  readonly #options: ClaimDeskOptions;
  readonly #times: typeof claimTimes;
  readonly #tenants: TenantRecords;
  readonly #candidates: Candidates;
  readonly #pollers = new Pollers();
  readonly #asks = new Set<DeskAsk>();
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

  /** Runs of this tenant have become ready, in these lanes or in any. */
  ready(tenantId: string, lanes?: readonly string[]): void {
    this.#tenants.hint(tenantId, performance.now(), lanes);
    this.#deal();
  }

  /** Hints may have been lost: the server was out of reach, and is back. */
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

  /** Waits for runs. An abort (the worker has gone, or there is a signal for it) ends the wait without any. */
  claim(request: Claim, signal: AbortSignal): Promise<ClaimedRun[]> {
    return new Promise((resolve) => {
      const lanes = lanesOf(request);
      const waitMs = Math.min(request.wait_ms, leaseTimes(this.#options.leaseMs).pollMs);
      const { worker, incarnation, free } = request;
      const poller = { worker, incarnation, laneSet: nameSetOf(lanes) };
      const timer = setTimeout(() => poll.end([]), waitMs);
      const leave = (): void => poll.end([]);
      const poll: WaitingPoll = {
        ...poller,
        name: nameOf(poller),
        free,
        lanes,
        takes: tenantsOf(request),
        end: (runs) => {
          clearTimeout(timer);
          signal.removeEventListener('abort', leave);
          this.#pollers.remove(poll);
          resolve(runs);
        },
      };
      if (signal.aborted) return leave();
      signal.addEventListener('abort', leave, { once: true });
      if (this.#pollers.add(poll) && free > 0) this.#welcome(poll);
    });
  }

  /** A worker polls for these lanes. It must be known which tenants are off before any is asked. */
  #welcome({ laneSet, lanes }: WaitingPoll): void {
    const isNew = this.#tenants.open(laneSet, lanes, performance.now());
    if (isNew || this.#candidates.isLate) void this.#candidates.lookAtAll().then(() => this.#deal());
    else this.#deal();
  }

  async #sweep(): Promise<void> {
    const now = performance.now();
    void this.#returnLeftOver(now - leaseTimes(this.#options.leaseMs).leftMs);
    for (const ask of this.#asks) if (now - ask.atMs > this.#times.hopelessMs) this.#end(ask);
    this.#tenants.deleteExpired(now);
    if (this.#pollers.waiting > 0) {
      await this.#candidates.lookAtAll();
      this.#deal();
    }
    this.#options.onSwept?.();
  }

  /** Asks tenants with ready runs for the places that are free. */
  #deal(): void {
    const tenants = this.#tenants;
    for (const [laneSet, free] of this.#pollers.free()) {
      const now = performance.now();
      const { asks, postponed } = choose(tenants.queueOf(laneSet), free, {
        laneSet,
        now,
        asks: this.#asks,
        isConnecting: this.#options.loader.isBusy,
        isOff: (tenantId) => this.#candidates.isOff(tenantId),
        hasOthersAtWork: (tenant) => tenants.hasOthersAtWork(tenant, now),
      });
      for (const { turn } of postponed) if (turn !== undefined) turn.isWanted = true;
      for (const ask of asks) this.#begin(ask);
    }
  }

  #begin(ask: DeskAsk): void {
    this.#asks.add(ask);
    ask.tenant.asks.set(ask.laneSet, ask);
    if (ask.keepsPlaces) this.#pollers.keep(ask.portions);
    this.#tenants.take(ask.tenant, ask.laneSet, ask.atMs);
    const asking = this.#ask(ask);
    this.#underWay.add(asking);
    void asking.finally(() => this.#underWay.delete(asking));
  }

  #end(ask: DeskAsk): void {
    this.#asks.delete(ask);
    if (ask.tenant.asks.get(ask.laneSet) === ask) ask.tenant.asks.delete(ask.laneSet);
  }

  async #ask(ask: DeskAsk): Promise<void> {
    const patience = setTimeout(() => this.#overdue(ask), ask.patienceMs);
    try {
      const lists = await this.#claimOf(ask);
      this.#release(ask);
      if (lists === undefined) this.#tenants.delete(ask.tenant);
      else this.#hand(ask, lists);
    } catch (error) {
      this.#release(ask);
      this.#failed(ask, error);
    }
    clearTimeout(patience);
    this.#end(ask);
    this.#deal();
  }

  /** A tenant that cannot be served now is asked again after the next hint. The launcher tells why it cannot be served. */
  #failed({ tenant, laneSet, atMs, portions }: DeskAsk, error: unknown): void {
    tenant.failed(performance.now());
    if (isUnserved(error)) return this.#tenants.dropUnlessHinted(tenant, atMs);
    // only the answer may be lost: the workers' heartbeats are to say that they have none of these runs
    for (const { poll } of portions) this.#options.servings.note(poll.worker, tenant.id);
    this.#tenants.putBack(tenant, laneSet);
    if (this.#throttle.isDue(tenant.id, error))
      this.#options.log.warn({ err: error, tenant: tenant.id }, 'claim failed, retrying');
  }

  /** One list per portion; undefined where there is no such tenant. */
  #claimOf({ tenant, laneSet, portions }: DeskAsk): Promise<ClaimedRun[][] | undefined> {
    const { loader, turns, localTasks } = this.#options;
    const pollsOf = (name: string): EnginePoll[] =>
      portions.map(({ poll: { worker, incarnation, lanes }, places: free }) => {
        return { worker, incarnation, free, lanes: allowedLanes(lanes, name, localTasks) };
      });
    const claim = async (): Promise<ClaimedRun[][] | undefined> => {
      const row = await loader.byId(tenant.id).catch(unlessGone);
      if (row === undefined) return undefined;
      return loader.use(row.id, ({ engine, ctx }) => {
        checkpoint('claim.ask');
        return engine.runs.claim(ctx, pollsOf(row.name));
      });
    };
    return turns.claim({ tenant, laneSet, places: sumPlaces(portions) }, claim, (lists) => countRuns(lists ?? []));
  }

  /** The other tenants need not wait for this one any longer. */
  #overdue(ask: DeskAsk): void {
    ask.tenant.isOverdue(performance.now());
    this.#release(ask);
    this.#deal();
  }

  #release(ask: DeskAsk): void {
    if (ask.keepsPlaces) this.#pollers.release(ask.portions);
    ask.keepsPlaces = false;
  }

  /** A tenant that filled all places may have more runs. One that did not has none left. */
  #hand({ tenant, laneSet, portions, atMs, patienceMs }: DeskAsk, lists: readonly ClaimedRun[][]): void {
    const now = performance.now();
    if (now - atMs < patienceMs) tenant.answeredInTime(now);
    else tenant.answeredLate(now);
    const count = countRuns(lists);
    if (count > 0) checkpoint('claim.made');
    portions.forEach(({ poll }, i) => {
      const runs = lists[i] ?? [];
      for (const id of new Set(runs.map((run) => run.tenant))) this.#options.servings.note(poll.worker, id);
      this.#pollers.give(poll, runs, now);
    });
    if (count >= Math.min(sumPlaces(portions), largestClaim)) this.#tenants.putBack(tenant, laneSet);
  }

  /** Returns runs that no poll came for. Otherwise they would count as lost with a worker that never had them. */
  async #returnLeftOver(beforeMs: number): Promise<void> {
    const old = this.#pollers.takeLeftBefore(beforeMs);
    await Promise.all([...groupBy(old, (run) => run.tenant)].map(([tenant, runs]) => this.#return(tenant, runs)));
  }

  /** Nobody polls any more: runs that were claimed go back at once. */
  async #windUp(): Promise<void> {
    const { windUpMs } = this.#times;
    await within(windUpMs, Promise.all(this.#underWay));
    await within(windUpMs, this.#returnLeftOver(Number.POSITIVE_INFINITY));
  }

  async #return(tenant: string, runs: readonly ClaimedRun[]): Promise<void> {
    try {
      await this.#options.loader.use(tenant, ({ engine, ctx }) => engine.runs.report(ctx, runs.map(returnOf)));
    } catch (error) {
      this.#options.log.warn({ err: error, tenant }, 'runs could not be given back; they come back as lost');
    }
  }
}

/** Names longer than this are hashed: they are kept for each tenant that is asked. */
const maxNameLength = 200;

/** The same for the same lanes in any order. */
function nameSetOf(lanes: readonly string[]): string {
  const name = JSON.stringify(lanes.toSorted());
  return name.length <= maxNameLength ? name : createHash('sha256').update(name).digest('base64');
}

function countRuns(lists: readonly (readonly ClaimedRun[])[]): number {
  return lists.reduce((sum, runs) => sum + runs.length, 0);
}

function returnOf({ tenant, run, lease }: ClaimedRun): Report {
  return { tenant, run, lease, state: 'returned', reason: null, exit_code: null, started_at: null };
}
