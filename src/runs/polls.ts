/** The polls of workers for claims and hand-overs: only current ones, grouped by lanes, with their places. */
import type { Poll } from '../contract/engine.ts';
import { runtimeOf } from '../contract/lane.ts';
import { groupBy } from '../kernel/group-by.ts';

/** Without polls of an earlier incarnation of a worker, which would not receive the answer. */
export function currentPolls(polls: readonly Poll[]): Poll[] {
  const newest = new Map<string, number>();
  for (const { worker, incarnation } of polls) newest.set(worker, Math.max(incarnation, newest.get(worker) ?? 0));
  return polls.filter(({ worker, incarnation }) => incarnation === newest.get(worker));
}

/** Groups polls for the same lanes. */
export function groupByLanes(polls: readonly Poll[]): Poll[][] {
  return [...groupBy(polls, (poll) => JSON.stringify(poll.lanes.toSorted())).values()];
}

/** One entry per free place, one place of each worker in turn, so that no worker takes all runs while others are idle. */
export function dealPlaces(polls: readonly Poll[], max: number): Poll[] {
  const places: Poll[] = [];
  for (let round = 0; places.length < max; round++) {
    const open = polls.filter((poll) => poll.free > round);
    if (open.length === 0) break;
    places.push(...open);
  }
  return places.slice(0, max);
}

/** How many of these places each poll has. */
export function countPlaces(places: readonly Poll[]): [Poll, number][] {
  const counts = new Map<Poll, number>();
  for (const poll of places) counts.set(poll, (counts.get(poll) ?? 0) + 1);
  return [...counts];
}

/** Assigns the rows that were handed out to a worker to its polls. */
export function dealRows<Row extends { readonly worker_id: string }>(
  polls: readonly Poll[],
  rows: readonly Row[],
): [Poll, Row[]][] {
  const byWorker = groupBy(rows, (row) => row.worker_id);
  return polls.map((poll) => [poll, byWorker.get(poll.worker)?.splice(0, poll.free) ?? []]);
}

/** A run that executes nothing needs no credential. Signing is the most expensive part of handing out a run. */
export function executesAny(polls: readonly Poll[]): boolean {
  return polls.some((poll) => poll.lanes.some((lane) => runtimeOf(lane) !== 'none'));
}
