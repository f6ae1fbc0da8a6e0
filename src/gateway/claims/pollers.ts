/**
 * The polls that wait for runs: one record for each poller, which is a worker's incarnation and a set of lanes. (A worker has a
 * poll for runs that take a place, and one for runs that do not. The places that come with a report are a poller of their own,
 * while the report is being applied.)
 *
 * A record outlives its poll while places are kept for a claim under way, or while runs are left over, which were claimed for
 * a poll that has ended. The poller's next polls get those, as many as fit into their places and into the bytes of an answer.
 * Runs that no poll takes in time are returned to the tenant.
 */
import { maxClaimBytes, type Poll as EnginePoll } from '../../contract/engine.ts';
import type { ClaimedRun } from '../../contract/wire.ts';
import type { Poll, Portion } from './choose.ts';

export interface WaitingPoll extends Poll, EnginePoll {
  readonly laneSet: string;
  /** The name of the poller, from `nameOf`. */
  readonly name: string;
  /** Ends the poll with these runs. */
  readonly end: (runs: ClaimedRun[]) => void;
}

interface LeftOver {
  readonly atMs: number;
  readonly run: ClaimedRun;
  /** The size of its params as JSON. */
  readonly bytes: number;
}

interface Poller {
  poll: WaitingPoll | undefined;
  /** The worker has restarted since this poll began, so the answer would not be received. */
  isOutlived: boolean;
  /** Places that are kept for tenants that are being asked. */
  keptPlaces: number;
  leftOver: readonly LeftOver[];
}

export class Pollers {
  readonly #byName = new Map<string, Poller>();
  #waiting = 0;

  /** The number of waiting polls. */
  get waiting(): number {
    return this.#waiting;
  }

  /**
   * Lets a poll wait, and returns true; or ends it with left-over runs, and returns false. An older poll of the same poller ends,
   * because the worker has changed its request.
   */
  add(poll: WaitingPoll): boolean {
    const { name } = poll;
    const poller = this.#of(name);
    poller.poll?.end([]);
    const leftOver = this.#takeLeftOver(name, poll.free);
    if (leftOver.length > 0) {
      poll.end(leftOver);
      return false;
    }
    // last in the map, because polls are served in order of arrival
    this.#byName.delete(name);
    this.#byName.set(name, Object.assign(poller, { poll, isOutlived: false }));
    this.#waiting++;
    this.#compareLives(poller, poll);
    return true;
  }

  #compareLives(poller: Poller, { worker, incarnation }: WaitingPoll): void {
    for (const other of this.#byName.values()) {
      if (other.poll?.worker !== worker) continue;
      if (other.poll.incarnation < incarnation) other.isOutlived = true;
      if (other.poll.incarnation > incarnation) poller.isOutlived = true;
    }
  }

  /** The poll has ended. */
  remove(poll: WaitingPoll): void {
    const poller = this.#byName.get(poll.name);
    if (poller?.poll !== poll) return;
    poller.poll = undefined;
    this.#waiting--;
    this.#tidy(poll.name, poller);
  }

  /** Polls with free places, by their lanes. */
  free(): Map<string, Portion<WaitingPoll>[]> {
    const byLanes = new Map<string, Portion<WaitingPoll>[]>();
    for (const { poll, isOutlived, keptPlaces, leftOver } of this.#byName.values()) {
      if (poll === undefined || isOutlived) continue;
      const places = poll.free - keptPlaces - leftOver.length;
      if (places <= 0) continue;
      const portions = byLanes.get(poll.laneSet);
      if (portions === undefined) byLanes.set(poll.laneSet, [{ poll, places }]);
      else portions.push({ poll, places });
    }
    return byLanes;
  }

  /** Keeps these places for a claim. */
  keep(portions: readonly Portion<WaitingPoll>[]): void {
    for (const { poll, places } of portions) this.#of(poll.name).keptPlaces += places;
  }

  release(portions: readonly Portion<WaitingPoll>[]): void {
    for (const { poll, places } of portions) {
      const poller = this.#of(poll.name);
      poller.keptPlaces -= places;
      this.#tidy(poll.name, poller);
    }
  }

  /**
   * Ends the poll with these runs. If it has ended meanwhile, they go to the poll of its worker for the same lanes that waits or
   * comes next.
   */
  give(poll: WaitingPoll, runs: ClaimedRun[], atMs: number): void {
    if (runs.length === 0) return;
    if (this.#byName.get(poll.name)?.poll === poll) return poll.end(runs);
    const name = nameOf(poll);
    const poller = this.#of(name);
    const added = runs.map((run) => ({ atMs, run, bytes: Buffer.byteLength(JSON.stringify(run.params)) }));
    poller.leftOver = [...poller.leftOver, ...added];
    if (poller.poll !== undefined && poller.poll.free > 0) poller.poll.end(this.#takeLeftOver(name, poller.poll.free));
  }

  /** Takes the runs that were left over before this time. */
  takeLeftBefore(beforeMs: number): ClaimedRun[] {
    const old: ClaimedRun[] = [];
    for (const [name, poller] of this.#byName) {
      for (const { atMs, run } of poller.leftOver) if (atMs < beforeMs) old.push(run);
      poller.leftOver = poller.leftOver.filter(({ atMs }) => atMs >= beforeMs);
      this.#tidy(name, poller);
    }
    return old;
  }

  #takeLeftOver(name: string, max: number): ClaimedRun[] {
    const poller = this.#of(name);
    const count = Math.min(max, countFitting(poller.leftOver));
    const taken = poller.leftOver.slice(0, count);
    poller.leftOver = poller.leftOver.slice(count);
    this.#tidy(name, poller);
    return taken.map(({ run }) => run);
  }

  #of(name: string): Poller {
    const known = this.#byName.get(name);
    if (known !== undefined) return known;
    const poller = { poll: undefined, isOutlived: false, keptPlaces: 0, leftOver: [] };
    this.#byName.set(name, poller);
    return poller;
  }

  #tidy(name: string, { poll, keptPlaces, leftOver }: Poller): void {
    if (poll === undefined && keptPlaces === 0 && leftOver.length === 0) this.#byName.delete(name);
  }
}

export function nameOf({
  worker,
  incarnation,
  laneSet,
}: Pick<WaitingPoll, 'worker' | 'incarnation' | 'laneSet'>): string {
  return `${worker} ${incarnation} ${laneSet}`;
}

/** The number of runs that fit into one answer; at least one. */
function countFitting(leftOver: readonly LeftOver[]): number {
  let bytes = 0;
  const over = leftOver.findIndex((each) => (bytes += each.bytes) > maxClaimBytes);
  return over < 0 ? leftOver.length : Math.max(1, over);
}
