/**
 * Where workers wait for work: the polls of many workers become one claim per tenant, and tenants that have ready runs
 * are served in turn. A poll ends with runs, with a signal for its worker, or when its time is up; a wake-up that got
 * lost is made good by a sweep.
 */
import { largestClaim, type Poll } from '../contract/engine.ts';
import { laneOf } from '../contract/lane.ts';
import { leaseTimes } from '../contract/lease-times.ts';
import type { ClaimedRun, ClaimRequest, HeldRun, Report } from '../contract/wire.ts';
import { checkpoint } from '../kernel/checkpoint.ts';
import { groupBy } from '../kernel/group.ts';
import type { Log } from '../kernel/log.ts';
import { every, type Service } from '../kernel/service.ts';
import type { Loader } from '../launcher/loader.ts';
import { EmptyLanes } from './empty-lanes.ts';

const sweepMs = 1_000;
const recentMs = 60_000;
const mostWorkers = 10_000;
/** After so long the others are not kept waiting for a tenant's answer; it counts when it comes. */
const patienceMs = 500;

interface Waiting extends Poll {
  /** Its lanes, as a key. */
  readonly kind: string;
  readonly done: (runs: ClaimedRun[]) => void;
}

interface Left {
  readonly at: number;
  readonly run: ClaimedRun;
}

export class ClaimDesk {
  readonly #loader: Loader;
  readonly #log: Log;
  readonly #waiting = new Set<Waiting>();
  /** Tenants that may have ready runs. */
  readonly #hot = new Set<string>();
  readonly #empty = new EmptyLanes();
  /** When which tenant last gave a worker runs: its heartbeats concern the recent ones. */
  readonly #served = new Map<string, Map<string, number>>();
  readonly #incarnations = new Map<string, number>();
  readonly #leftMs: number;
  readonly #longestPollMs: number;
  /** Runs that were claimed for a poll which had ended meanwhile, by worker, incarnation and lanes. */
  readonly #left = new Map<string, readonly Left[]>();
  #dealing = false;
  /** Tenants that have been asked and have not answered. */
  readonly #asking = new Set<string>();
  readonly service: Service;

  constructor(loader: Loader, log: Log, leaseMs: number) {
    this.#loader = loader;
    this.#log = log;
    this.#leftMs = leaseTimes(leaseMs).leftMs;
    this.#longestPollMs = leaseTimes(leaseMs).pollMs;
    this.service = every(
      sweepMs,
      'claims',
      () => this.#sweep(),
      (error) => this.#log.warn({ err: error }, 'looking for ready runs failed'),
    );
  }

  /** Runs of this tenant have become ready. */
  ready(tenantId: string): void {
    this.#hot.add(tenantId);
    this.#empty.ring(tenantId);
    void this.#deal();
  }

  /** Bells may have been missed. */
  readyAnywhere(): void {
    this.#empty.forget();
    void this.#look();
  }

  /** Waits for runs. An abort (the worker went away, or a signal for it is there) ends the wait empty-handed. */
  claim(request: ClaimRequest, signal: AbortSignal): Promise<ClaimedRun[]> {
    return new Promise((resolve) => {
      const lanes = request.runtimes.flatMap((runtime) => request.queues.map((queue) => laneOf(runtime, queue)));
      const timer = setTimeout(() => waiting.done([]), Math.min(request.wait_ms, this.#longestPollMs));
      const leave = (): void => waiting.done([]);
      const waiting: Waiting = {
        worker: request.worker,
        incarnation: request.incarnation,
        free: request.free,
        lanes,
        kind: JSON.stringify(lanes.toSorted()),
        done: (runs) => {
          clearTimeout(timer);
          signal.removeEventListener('abort', leave);
          this.#waiting.delete(waiting);
          resolve(runs);
        },
      };
      signal.addEventListener('abort', leave, { once: true });
      if (signal.aborted) return leave();
      const left = this.#takeLeft(waiting);
      if (left.length > 0) return waiting.done(left);
      this.#waiting.add(waiting);
      if (request.free > 0) void this.#look(waiting.kind);
    });
  }

  /**
   * The tenants a heartbeat is about: those whose runs the worker holds, and those that may think it does. That is all
   * of them when this incarnation is new here: what an earlier one held comes back at once.
   */
  async tenantsOf(worker: string, incarnation: number, holds: readonly HeldRun[]): Promise<Set<string>> {
    const held = holds.map((run) => run.tenant);
    if (this.#incarnations.get(worker) !== incarnation) {
      const all = (await this.#loader.tenants()).filter((row) => row.desired === 'on');
      // a worker that is forgotten is only asked about once more
      if (this.#incarnations.size > mostWorkers) this.#forgetWorkers();
      this.#incarnations.set(worker, incarnation);
      return new Set([...all.map((row) => row.name), ...held]);
    }
    const recent = [...(this.#served.get(worker) ?? [])].filter(([, at]) => at > performance.now() - recentMs);
    this.#served.set(worker, new Map(recent));
    return new Set([...recent.map(([tenant]) => tenant), ...held]);
  }

  #forgetWorkers(): void {
    this.#incarnations.clear();
    this.#served.clear();
  }

  /** A new poll asks every tenant once, but those that are known to have nothing for it; the sweep asks them too. */
  async #look(lanes?: string): Promise<void> {
    try {
      for (const { id } of await this.#loader.tenants()) {
        if (lanes === undefined || !this.#empty.has(id, lanes)) this.#hot.add(id);
      }
    } catch (error) {
      this.#log.warn({ err: error }, 'the tenants cannot be read');
    }
    await this.#deal();
  }

  async #sweep(): Promise<void> {
    this.#returnLeft();
    if (this.#hungry().length > 0) await this.#look();
  }

  /** Polls with room. One of a worker's earlier life has none: nobody would hear the answer. */
  #hungry(): Waiting[] {
    const polls = [...this.#waiting].filter((waiting) => waiting.free > 0);
    const newest = new Map<string, number>();
    for (const { worker, incarnation } of polls) newest.set(worker, Math.max(incarnation, newest.get(worker) ?? 0));
    return polls.filter(({ worker, incarnation }) => incarnation === newest.get(worker));
  }

  /**
   * Goes round the hot tenants until none is left or nobody is hungry. One round at a time, and one tenant after the
   * other, lest a poll is given more than it asked for; but one whose database stands still does not hold up the rest.
   */
  async #deal(): Promise<void> {
    if (this.#dealing) return;
    this.#dealing = true;
    try {
      for (let turn = this.#turn(); turn.length > 0 && this.#hungry().length > 0; turn = this.#turn()) {
        for (const tenantId of turn) await within(patienceMs, this.#dealFrom(tenantId));
      }
    } finally {
      this.#dealing = false;
    }
  }

  #turn(): string[] {
    return [...this.#hot].filter((tenantId) => !this.#asking.has(tenantId));
  }

  async #dealFrom(tenantId: string): Promise<void> {
    const hungry = this.#hungry();
    // it keeps its turn: put behind those that were just served, it would never come to it
    if (hungry.length === 0) return;
    this.#hot.delete(tenantId);
    this.#asking.add(tenantId);
    const askedAt = performance.now();
    try {
      const row = (await this.#loader.tenants()).find((tenant) => tenant.id === tenantId);
      if (row === undefined || row.desired === 'off') return;
      const { engine, ctx } = await this.#loader.open(row);
      checkpoint('claim.ask');
      const bell = this.#empty.bell(tenantId);
      const lists = await engine.claim(ctx, hungry);
      if (lists.some((runs) => runs.length > 0)) checkpoint('claim.made');
      hungry.forEach((waiting, i) => this.#give(waiting, lists[i] ?? []));
      this.#noteAnswer(tenantId, bell, hungry, lists);
    } catch (error) {
      this.#log.warn({ err: error, tenant: tenantId }, 'a claim failed; it is tried again with the next sweep');
    } finally {
      this.#asking.delete(tenantId);
      // the round went on without it
      if (performance.now() - askedAt >= patienceMs) void this.#deal();
    }
  }

  /** Whoever got all it asked for may have left more behind; whoever did not has left nothing. */
  #noteAnswer(tenantId: string, bell: number, hungry: readonly Waiting[], lists: readonly ClaimedRun[][]): void {
    const asked = hungry.map(({ kind, free }, i) => ({ kind, free, got: lists[i]?.length ?? 0 }));
    for (const [kind, some] of groupBy(asked, (each) => each.kind)) {
      const free = some.reduce((sum, each) => sum + each.free, 0);
      const got = some.reduce((sum, each) => sum + each.got, 0);
      if (got >= Math.min(free, largestClaim)) this.#hot.add(tenantId);
      else this.#empty.note(tenantId, kind, bell);
    }
  }

  /** A poll that a signal or its time ended while we claimed is followed by the worker's next one, which gets the runs. */
  #give(waiting: Waiting, runs: ClaimedRun[]): void {
    if (runs.length === 0) return;
    this.#noteServed(waiting, runs);
    if (this.#waiting.has(waiting)) return waiting.done(runs);
    const at = performance.now();
    this.#left.set(nameOf(waiting), [...(this.#left.get(nameOf(waiting)) ?? []), ...runs.map((run) => ({ at, run }))]);
    const next = [...this.#waiting].find((poll) => nameOf(poll) === nameOf(waiting) && poll.free > 0);
    next?.done(this.#takeLeft(next));
  }

  /** As many as fit. */
  #takeLeft(poll: Waiting): ClaimedRun[] {
    const left = this.#left.get(nameOf(poll)) ?? [];
    this.#keepLeft(nameOf(poll), left.slice(poll.free));
    return left.slice(0, poll.free).map(({ run }) => run);
  }

  #keepLeft(name: string, left: readonly Left[]): void {
    if (left.length > 0) this.#left.set(name, left);
    else this.#left.delete(name);
  }

  /** Nobody came for them: they go back as they are. Left alone they would count as lost with a worker that never had them. */
  #returnLeft(): void {
    const before = performance.now() - this.#leftMs;
    const old: ClaimedRun[] = [];
    for (const [name, left] of this.#left) {
      for (const { at, run } of left) if (at < before) old.push(run);
      this.#keepLeft(
        name,
        left.filter(({ at }) => at >= before),
      );
    }
    for (const [tenant, runs] of groupBy(old, (run) => run.tenant)) void this.#return(tenant, runs);
  }

  async #return(tenant: string, runs: readonly ClaimedRun[]): Promise<void> {
    try {
      const { engine, ctx } = await this.#loader.named(tenant);
      await engine.report(ctx, runs.map(returned));
    } catch (error) {
      this.#log.warn({ err: error, tenant }, 'runs could not be given back; they come back as lost');
    }
  }

  #noteServed(waiting: Waiting, runs: readonly ClaimedRun[]): void {
    const tenants = this.#served.get(waiting.worker) ?? new Map<string, number>();
    for (const run of runs) tenants.set(run.tenant, performance.now());
    this.#served.set(waiting.worker, tenants);
  }
}

function returned({ tenant, run, lease }: ClaimedRun): Report {
  return { tenant, run, lease, state: 'returned', reason: null, exit_code: null, started_at: null };
}

/** A worker has a poll for each kind of room it has; what is left for one is not given to another. */
function nameOf({ worker, incarnation, kind }: Waiting): string {
  return `${worker} ${incarnation} ${kind}`;
}

async function within(ms: number, work: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  await Promise.race([work, late]);
  clearTimeout(timer);
}
