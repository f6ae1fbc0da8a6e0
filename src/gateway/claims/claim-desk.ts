/**
 * Where workers wait for work: the polls of many workers become one claim per tenant, and tenants that have ready runs
 * share the free places. A poll ends with runs, with a signal for its worker, or when its time is up.
 *
 * 1. No tenant is asked for nothing: bells say who has ready runs, and what bells were lost about, one statement of the
 *    control database each second. Only those whose schedulers are silent are asked to be sure, a few at a time.
 * 2. Tenants are asked beside each other, each for its share of the places, which are kept for it while it may answer in
 *    time. For one that is slow, or fails, none are kept: it costs the others nothing (I11). What it gives at last goes to
 *    the next poll of the worker that it was asked for, or back after some seconds.
 */
import { largestClaim, type Poll } from '../../contract/engine.ts';
import { laneOf } from '../../contract/lane.ts';
import { leaseTimes } from '../../contract/lease-times.ts';
import type { LocalTasks } from '../../contract/local-tasks.ts';
import type { ClaimedRun, Report } from '../../contract/wire.ts';
import { checkpoint } from '../checkpoints.ts';
import { groupBy } from '../../kernel/group-by.ts';
import type { Log } from '../../kernel/log.ts';
import { every, type Service, within } from '../../kernel/service.ts';
import type { Db } from '../../kernel/sql.ts';
import { isUnserved, type Loader, unlessGone } from '../../loader/loader.ts';
import { Candidates } from './candidates.ts';
import { allowedLanes, type Claim, tenantsOf } from './claim-rules.ts';
import { HotTenants } from './hot-tenants.ts';
import { LeftRuns } from './left-runs.ts';
import type { Servings } from '../desks/servings.ts';
import { atMost, dealPlaces, sumOf } from './fair-shares.ts';
import { TenantPace } from './tenant-pace.ts';
import type { BatchTurns } from './batch-turns.ts';

const sweepMs = 1_000;
/** A claim that has no answer for so long will have none: its tenant may be asked again. */
const hopelessMs = 30_000;
/** For the same lanes so many tenants are asked at a time, and beside them as many that are slow. */
const mostAsked = 16;
/** Of so many places one is kept back: whose runs become ready while a large claim is under way need not wait for it. */
const spareOf = 32;
/** How long claims that are under way are waited for at the end. */
const lastAskMs = 1_000;

interface Waiting extends Poll {
  /** Its lanes, as a key. */
  readonly kind: string;
  /** A worker has a poll for each kind of room it has; what is left for one is not given to another. */
  readonly name: string;
  /** Whether it takes runs of this tenant now. */
  readonly takes: (tenantId: string) => boolean;
  readonly done: (runs: ClaimedRun[]) => void;
}

interface Portion {
  readonly waiting: Waiting;
  readonly places: number;
}

/** A tenant is being asked for runs of these lanes. */
interface Ask {
  readonly tenantId: string;
  readonly kind: string;
  readonly portions: readonly Portion[];
  readonly atMs: number;
  /** For so long places are kept for it. */
  readonly patienceMs: number;
  keeps: boolean;
}

export interface ClaimDeskOptions {
  readonly loader: Loader;
  readonly control: Db;
  readonly servings: Servings;
  readonly turns: BatchTurns;
  readonly log: Log;
  readonly leaseMs: number;
  readonly localTasks?: LocalTasks;
}

export class ClaimDesk {
  readonly #options: ClaimDeskOptions;
  readonly #waiting = new Set<Waiting>();
  readonly #hot = new HotTenants();
  readonly #candidates: Candidates;
  readonly #pace = new TenantPace();
  readonly #left = new LeftRuns();
  /** By lanes, and then by tenant: none of them waits for an answer about lanes that are not its. */
  readonly #asking = new Map<string, Map<string, Ask>>();
  /** Places that are kept for tenants which are being asked, by worker, incarnation and lanes. */
  readonly #kept = new Map<string, number>();
  readonly #underWay = new Set<Promise<void>>();
  readonly service: Service;

  constructor(options: ClaimDeskOptions) {
    this.#options = options;
    options.turns.onFree(() => this.#deal());
    this.#candidates = new Candidates(options.control, this.#hot, options.log);
    const sweeping = every(
      sweepMs,
      'claims',
      () => this.#sweep(),
      (error) => options.log.warn({ err: error }, 'looking for ready runs failed'),
    );
    this.service = { ...sweeping, stop: () => sweeping.stop().then(() => this.#windUp()) };
  }

  /** Runs of this tenant have become ready, in these lanes or in any. */
  ready(tenantId: string, lanes?: readonly string[]): void {
    this.#hot.add(tenantId, performance.now(), lanes);
    this.#deal();
  }

  /** Bells may have been missed: the server was out of reach, and is back. */
  lookAgain(): void {
    this.#pace.forgive();
    this.#hot.forgetOld(performance.now());
    this.#hot.heatAll();
    this.#candidates.outdate();
    if (this.#waiting.size > 0) void this.#candidates.lookAnew({ atAll: true }).then(() => this.#deal());
  }

  /** This tenant was switched on or off, or is served by another engine. Of the others there is nothing new. */
  changed(tenantId: string): void {
    this.#hot.again(tenantId);
    this.#candidates.outdate();
    if (this.#waiting.size > 0) void this.#candidates.lookAnew({ atAll: false }).then(() => this.#deal());
  }

  /** Waits for runs. An abort (the worker went away, or a signal for it is there) ends the wait empty-handed. */
  claim(request: Claim, signal: AbortSignal): Promise<ClaimedRun[]> {
    return new Promise((resolve) => {
      const lanes = request.runtimes.flatMap((runtime) => request.queues.map((queue) => laneOf(runtime, queue)));
      const longestMs = leaseTimes(this.#options.leaseMs).pollMs;
      const timer = setTimeout(() => waiting.done([]), Math.min(request.wait_ms, longestMs));
      const leave = (): void => waiting.done([]);
      const { worker, incarnation, free } = request;
      const kind = JSON.stringify(lanes.toSorted());
      const waiting: Waiting = {
        worker,
        incarnation,
        free,
        lanes,
        kind,
        name: `${worker} ${incarnation} ${kind}`,
        takes: tenantsOf(request),
        done: (runs) => {
          clearTimeout(timer);
          signal.removeEventListener('abort', leave);
          this.#waiting.delete(waiting);
          resolve(runs);
        },
      };
      signal.addEventListener('abort', leave, { once: true });
      if (signal.aborted) return leave();
      // the worker has changed its mind about what it takes; what is claimed for its older poll goes to this one
      for (const older of this.#waiting) if (older.name === waiting.name) older.done([]);
      const left = this.#left.take(waiting.name, free);
      if (left.length > 0) return waiting.done(left);
      this.#waiting.add(waiting);
      if (free > 0) this.#welcome(waiting);
    });
  }

  /** Somebody polls for these lanes. Who is switched off must be known before anybody is asked. */
  #welcome({ kind, lanes }: Waiting): void {
    const isNew = this.#hot.open(kind, lanes);
    if (isNew || this.#candidates.isLate) void this.#candidates.lookAtAll().then(() => this.#deal());
    else this.#deal();
  }

  async #sweep(): Promise<void> {
    const nowMs = performance.now();
    void this.#returnLeft(nowMs - leaseTimes(this.#options.leaseMs).leftMs);
    for (const asking of this.#asking.values())
      for (const ask of asking.values()) if (nowMs - ask.atMs > hopelessMs) this.#forget(ask);
    if (this.#waiting.size === 0) return;
    this.#hot.forgetOld(nowMs);
    this.#pace.forgetOld(nowMs);
    await this.#candidates.lookAtAll();
    this.#deal();
  }

  /** Polls with room. One of a worker's earlier life has none: nobody would hear the answer. */
  #hungry(): Portion[] {
    const newest = new Map<string, number>();
    for (const { worker, incarnation } of this.#waiting)
      newest.set(worker, Math.max(incarnation, newest.get(worker) ?? 0));
    const hungry: Portion[] = [];
    for (const waiting of this.#waiting) {
      const { name, free } = waiting;
      const places = free - (this.#kept.get(name) ?? 0) - this.#left.count(name);
      if (places > 0 && waiting.incarnation === newest.get(waiting.worker)) hungry.push({ waiting, places });
    }
    return hungry;
  }

  /** Asks whoever is hot for the places that are free. */
  #deal(): void {
    for (const [kind, polls] of groupBy(this.#hungry(), ({ waiting }) => waiting.kind)) {
      const { prompt, slow } = this.#askable(kind, polls);
      this.#share(kind, prompt, polls);
      this.#share(kind, slow, polls);
    }
  }

  /** Tenants that are hot for these lanes and may be asked now, longest waiting first. */
  #askable(kind: string, polls: readonly Portion[]): { prompt: string[]; slow: string[] } {
    const nowMs = performance.now();
    const prompt: string[] = [];
    const slow: string[] = [];
    const asking = this.#asking.get(kind);
    const underWay = [...(asking?.values() ?? [])];
    const promptRoom = mostAsked - underWay.filter((ask) => ask.keeps).length;
    // those that stand still would soon be all of them; but where this process is what they wait for, more of them do not help
    const { isBusy } = this.#options.loader;
    const isInTheWay = (ask: Ask): boolean => !ask.keeps && (isBusy || nowMs - ask.atMs < sweepMs);
    const slowRoom = mostAsked - underWay.filter(isInTheWay).length;
    let cold = 0;
    for (const tenantId of this.#hot.of(kind)) {
      if (asking?.has(tenantId) || this.#candidates.isOff(tenantId) || !this.#pace.mayAsk(tenantId, nowMs)) continue;
      const places = sumOf(polls.filter(({ waiting }) => waiting.takes(tenantId)));
      if (places === 0 || this.#options.turns.mustWait(tenantId, kind, places)) continue;
      const [list, most] = this.#pace.isSlow(tenantId) ? [slow, slowRoom] : [prompt, promptRoom];
      if (list.length >= most) continue;
      if (!this.#pace.isKnown(tenantId, nowMs)) {
        // nobody may have a connection to it yet: for other lanes it would need a second one
        if (this.#isBeingAsked(tenantId)) continue;
        // and of hundreds each would wait for those of all others
        if (isBusy && list === prompt && cold++ >= slowRoom) continue;
      }
      list.push(tenantId);
    }
    return { prompt, slow };
  }

  #isBeingAsked(tenantId: string): boolean {
    for (const asking of this.#asking.values()) if (asking.has(tenantId)) return true;
    return false;
  }

  #share(kind: string, tenants: readonly string[], polls: readonly Portion[]): void {
    const shares = dealPlaces(
      polls.map(({ places }) => places - Math.floor(places / spareOf)),
      tenants.length,
    );
    tenants.forEach((tenantId, i) => {
      const share = polls
        .map(({ waiting }, poll) => ({ waiting, places: shares[i]?.[poll] ?? 0 }))
        .filter(({ waiting, places }) => places > 0 && waiting.takes(tenantId));
      const portions = atMost(share, this.#options.turns.largestOf(tenantId));
      if (portions.length === 0) return;
      const keeps = !this.#pace.isSlow(tenantId);
      const atMs = performance.now();
      const patienceMs = this.#pace.patienceMs(tenantId, atMs);
      const asking = this.#ask({ tenantId, kind, portions, atMs, patienceMs, keeps });
      this.#underWay.add(asking);
      void asking.finally(() => this.#underWay.delete(asking));
    });
  }

  async #ask(ask: Ask): Promise<void> {
    const { tenantId, kind, portions } = ask;
    this.#note(ask);
    if (ask.keeps) this.#keep(portions, 1);
    this.#hot.take(tenantId, kind, ask.atMs);
    const patience = setTimeout(() => this.#overdue(ask), ask.patienceMs);
    try {
      const lists = await this.#claimOf(ask);
      this.#letGo(ask);
      if (lists === undefined) this.#gone(tenantId);
      else {
        this.#noteTime(ask);
        this.#hand(ask, lists);
      }
    } catch (error) {
      this.#letGo(ask);
      this.#failed(ask, error);
    }
    clearTimeout(patience);
    this.#forget(ask);
    this.#deal();
  }

  #note(ask: Ask): void {
    const asking = this.#asking.get(ask.kind) ?? new Map<string, Ask>();
    this.#asking.set(ask.kind, asking.set(ask.tenantId, ask));
  }

  #forget(ask: Ask): void {
    const asking = this.#asking.get(ask.kind);
    if (asking?.get(ask.tenantId) === ask) asking.delete(ask.tenantId);
    if (asking?.size === 0) this.#asking.delete(ask.kind);
  }

  /** One that cannot be served now is asked again when something is said of it; why that is so the launcher tells. */
  #failed({ tenantId, kind, atMs, portions }: Ask, error: unknown): void {
    const isNews = this.#pace.failed(tenantId, performance.now());
    if (isUnserved(error)) return this.#hot.forgetUnlessSaid(tenantId, atMs);
    // only the answer may be lost: their heartbeats are to say that they have nothing of it
    for (const { waiting } of portions) this.#options.servings.note(waiting.worker, tenantId);
    this.#hot.addFor(tenantId, kind);
    if (isNews) this.#options.log.warn({ err: error, tenant: tenantId }, 'a claim failed; it is tried again');
  }

  /** One list per portion; undefined where there is no such tenant. */
  #claimOf({ tenantId, kind, portions }: Ask): Promise<ClaimedRun[][] | undefined> {
    const { loader, turns, localTasks } = this.#options;
    const pollsOf = (tenant: string): Poll[] =>
      portions.map(({ waiting: { worker, incarnation, lanes }, places: free }) => {
        return { worker, incarnation, free, lanes: allowedLanes(lanes, tenant, localTasks) };
      });
    const claim = async (): Promise<ClaimedRun[][] | undefined> => {
      const row = await loader.byId(tenantId).catch(unlessGone);
      if (row === undefined) return undefined;
      return loader.use(row.id, ({ engine, ctx }) => {
        checkpoint('claim.ask');
        return engine.runs.claim(ctx, pollsOf(row.name));
      });
    };
    const asked = { tenant: tenantId, lanes: kind, places: sumOf(portions) };
    return turns.claim(asked, claim, (lists) => countRuns(lists ?? []));
  }

  #gone(tenantId: string): void {
    this.#hot.forget(tenantId);
    this.#pace.forget(tenantId);
    this.#options.turns.forget(tenantId);
  }

  /** The others need not wait for it any longer. */
  #overdue(ask: Ask): void {
    this.#pace.overdue(ask.tenantId, performance.now());
    this.#letGo(ask);
    this.#deal();
  }

  #noteTime({ tenantId, atMs, patienceMs }: Ask): void {
    const nowMs = performance.now();
    if (nowMs - atMs < patienceMs) this.#pace.inTime(tenantId, nowMs);
    else this.#pace.late(tenantId, nowMs);
  }

  #letGo(ask: Ask): void {
    if (ask.keeps) this.#keep(ask.portions, -1);
    ask.keeps = false;
  }

  #keep(portions: readonly Portion[], sign: 1 | -1): void {
    for (const { waiting, places } of portions) {
      const { name } = waiting;
      const kept = (this.#kept.get(name) ?? 0) + sign * places;
      if (kept > 0) this.#kept.set(name, kept);
      else this.#kept.delete(name);
    }
  }

  /** Whoever got all it asked for may have left more behind; whoever did not has left nothing. */
  #hand({ tenantId, kind, portions }: Ask, lists: readonly ClaimedRun[][]): void {
    if (lists.some((runs) => runs.length > 0)) checkpoint('claim.made');
    portions.forEach(({ waiting }, i) => this.#give(waiting, lists[i] ?? []));
    if (countRuns(lists) >= Math.min(sumOf(portions), largestClaim)) this.#hot.addFor(tenantId, kind);
  }

  /** A poll that a signal, another tenant's runs or its time ended while we claimed is followed by the worker's next one. */
  #give(waiting: Waiting, runs: ClaimedRun[]): void {
    for (const tenant of new Set(runs.map((run) => run.tenant))) this.#options.servings.note(waiting.worker, tenant);
    if (runs.length === 0) return;
    if (this.#waiting.has(waiting)) return waiting.done(runs);
    const { name } = waiting;
    this.#left.put(name, runs, performance.now());
    const next = [...this.#waiting].find((poll) => poll.name === name && poll.free > 0);
    next?.done(this.#left.take(name, next.free));
  }

  /** Nobody came for them: they go back as they are. Left alone they would count as lost with a worker that never had them. */
  async #returnLeft(beforeMs: number): Promise<void> {
    const old = this.#left.takeOlder(beforeMs);
    await Promise.all([...groupBy(old, (run) => run.tenant)].map(([tenant, runs]) => this.#return(tenant, runs)));
  }

  /** Nobody polls any more: what is still claimed goes back at once. */
  async #windUp(): Promise<void> {
    await within(lastAskMs, Promise.all(this.#underWay));
    await within(lastAskMs, this.#returnLeft(Number.POSITIVE_INFINITY));
  }

  async #return(tenant: string, runs: readonly ClaimedRun[]): Promise<void> {
    try {
      await this.#options.loader.use(tenant, ({ engine, ctx }) => engine.runs.report(ctx, runs.map(returned)));
    } catch (error) {
      this.#options.log.warn({ err: error, tenant }, 'runs could not be given back; they come back as lost');
    }
  }
}

function countRuns(lists: readonly (readonly ClaimedRun[])[]): number {
  return lists.reduce((sum, runs) => sum + runs.length, 0);
}

function returned({ tenant, run, lease }: ClaimedRun): Report {
  return { tenant, run, lease, state: 'returned', reason: null, exit_code: null, started_at: null };
}
