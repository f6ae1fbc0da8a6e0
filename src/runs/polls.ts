/** The polls of workers as claims and hand-overs see them: those that somebody still hears, by lanes, and their places. */
import type { Poll } from '../contract/engine.ts';
import { runtimeOf } from '../contract/lane.ts';
import { groupBy } from '../kernel/group-by.ts';

/** Without polls of an earlier life of a worker: nobody would hear the answer. */
export function currentPolls(polls: readonly Poll[]): Poll[] {
  const newest = new Map<string, number>();
  for (const { worker, incarnation } of polls) newest.set(worker, Math.max(incarnation, newest.get(worker) ?? 0));
  return polls.filter(({ worker, incarnation }) => incarnation === newest.get(worker));
}

/** Polls for the same lanes together. */
export function groupByLanes(polls: readonly Poll[]): Poll[][] {
  return [...groupBy(polls, (poll) => JSON.stringify(poll.lanes.toSorted())).values()];
}

/** One entry per free place, a place of each worker in turn, so that none takes all while others are idle. */
export function dealPlaces(polls: readonly Poll[], max: number): Poll[] {
  const places: Poll[] = [];
  for (let round = 0; places.length < max; round++) {
    const hungry = polls.filter((poll) => poll.free > round);
    if (hungry.length === 0) break;
    places.push(...hungry);
  }
  return places.slice(0, max);
}

/** Which poll gets which of the rows that were handed out to its worker. */
export function dealRows<Row extends { readonly worker_id: string }>(
  polls: readonly Poll[],
  rows: readonly Row[],
): [Poll, Row[]][] {
  const byWorker = groupBy(rows, (row) => row.worker_id);
  return polls.map((poll) => [poll, byWorker.get(poll.worker)?.splice(0, poll.free) ?? []]);
}

/** A run that executes nothing has no use for a credential, and signing is the dearest part of handing it out. */
export function executesAny(polls: readonly Poll[]): boolean {
  return polls.some((poll) => poll.lanes.some((lane) => runtimeOf(lane) !== 'none'));
}
