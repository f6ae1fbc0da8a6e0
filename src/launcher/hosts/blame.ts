/**
 * Which tenants are suspected when their host is lost, and of how much.
 *
 * 1. A tenant that was alone in its host is to blame: it waits before it is tried again.
 * 2. In a shared host the culprit is not known, so no tenant waits. The suspicion of each tenant grows by one.
 * 3. The newcomer of a shared host is suspected so much that it needs a host for itself from now on: the tenant that was
 *    started or told to end in the last 10 s, and clearly after all others. A group that starts together has no newcomer.
 *
 * A tenant that is suspected twice gets a host for itself (`placement.ts`). So the culprit is alone after two losses, or
 * after one where it is the newcomer, and a wrong guess costs an innocent tenant no more than the start of a process.
 */

export interface Passenger {
  readonly tenantId: string;
  readonly suspicion: number;
  /** When it was last given to a host, began to run or was told to end. */
  readonly steppedMs: number;
  /** It runs, and makes no progress: that is no step of a start. */
  readonly hangs: boolean;
}

export interface Verdict {
  readonly suspicion: number;
  readonly isBlamed: boolean;
}

/** A tenant suspected this much shares its host with no other. */
export const aloneSuspicion = 2;

/** A tenant that misbehaves mostly does so soon after its start. */
const recentMs = 10_000;

/** Schedulers that are started together come to run within about 200 ms of each other (five tenants, two busy cores). */
const apartMs = 500;

/** `passengers`: the tenants of one lost host. */
export function judgeLoss(passengers: readonly Passenger[], lostMs: number): Map<string, Verdict> {
  const isBlamed = passengers.length === 1;
  const newcomer = isBlamed ? undefined : findNewcomer(passengers, lostMs);
  return new Map(
    passengers.map((passenger) => {
      const least = passenger === newcomer ? aloneSuspicion : 1;
      return [passenger.tenantId, { suspicion: Math.max(least, passenger.suspicion + 1), isBlamed }];
    }),
  );
}

function findNewcomer(passengers: readonly Passenger[], lostMs: number): Passenger | undefined {
  const [last, before] = passengers.filter(({ hangs }) => !hangs).toSorted((a, b) => b.steppedMs - a.steppedMs);
  if (last === undefined || last.steppedMs <= lostMs - recentMs) return undefined;
  const isApart = before === undefined || last.steppedMs - before.steppedMs >= apartMs;
  return isApart ? last : undefined;
}
