/**
 * The rules by which instants follow a trigger's `start`: periods and cron expressions, on a clock in a zone. Each says
 * what comes next and counts without walking; `schedule.ts` says what the rules mean, and adds `start` and `end`.
 */
import { dayMs } from '../kernel/text/duration.ts';
import type { CronPattern } from './cron.ts';
import { namedWalls, steppedWalls, type WallSet } from './cron-count.ts';
import { nextWall } from './cron-walk.ts';
import { changesBetween, firstShown, type Zone } from './zone.ts';

/** What both are asked for lies after `start`. */
export interface Rule {
  /** The first instant after `afterMs`, which is `start` or later. */
  readonly following: (afterMs: number) => number | undefined;
  /** How many instants there are with `fromMs` ≤ instant < `toMs`. */
  readonly count: (fromMs: number, toMs: number) => number;
}

export const endOfTimeMs = Date.UTC(10_000, 0, 1);

export function elapsedPeriod(startMs: number, periodMs: number): Rule {
  const periodsBefore = (ms: number): number => Math.ceil((ms - startMs) / periodMs);
  return {
    following: (afterMs) => startMs + (Math.floor((afterMs - startMs) / periodMs) + 1) * periodMs,
    count: (fromMs, toMs) => periodsBefore(toMs) - periodsBefore(fromMs),
  };
}

/** Whole days on the wall clock, each wall time once. */
export function wallPeriod(zone: Zone, startMs: number, periodMs: number): Rule {
  const startWall = wallAt(zone, startMs);
  const walls = steppedWalls(startWall, periodMs);
  return {
    following(afterMs) {
      // a wall time that is shown by now cannot lie ahead, so only later ones are tried
      let wall = startWall + (Math.floor((wallAt(zone, afterMs) - startWall) / periodMs) + 1) * periodMs;
      while (wall < endOfTimeMs && firstShown(zone, wall) <= afterMs) wall += periodMs;
      return wall < endOfTimeMs ? firstShown(zone, wall) : undefined;
    },
    count: (fromMs, toMs) => countOnce(walls, zone, fromMs, toMs),
  };
}

/** Each wall time once. */
export function namedHours(pattern: CronPattern, zone: Zone): Rule {
  return {
    following(afterMs) {
      const wall = nextWall(pattern, freshFrom(zone, afterMs + 1));
      return wall === undefined || wall >= endOfTimeMs ? undefined : firstShown(zone, wall);
    },
    count: (fromMs, toMs) => countOnce(namedWalls(pattern), zone, fromMs, toMs),
  };
}

/** Whenever the clock shows a named time. */
export function elapsedHours(pattern: CronPattern, zone: Zone): Rule {
  return {
    following: (afterMs) => nextElapsed(pattern, zone, afterMs),
    count: (fromMs, toMs) => countShown(namedWalls(pattern), zone, fromMs, toMs),
  };
}

/** Stretch by stretch, from the first moment after `afterMs`. */
function nextElapsed(pattern: CronPattern, zone: Zone, afterMs: number): number | undefined {
  let fromMs = afterMs + 1;
  let earlier: number | undefined;
  for (let looked = 0; fromMs < endOfTimeMs; looked++) {
    const { toMs, offsetMs } = zone.stretchAt(fromMs);
    const wall = nextWall(pattern, fromMs + offsetMs);
    if (wall !== undefined && wall < toMs + offsetMs) return wall - offsetMs;
    // nothing more in this stretch; the next may show some times again, the ones after it only what lies ahead
    if (looked > 0 && wall === undefined) return undefined;
    fromMs = wall !== undefined && wall === earlier ? Math.max(toMs, wall - 2 * dayMs) : toMs;
    earlier = wall;
  }
  return undefined;
}

function wallAt(zone: Zone, instantMs: number): number {
  return instantMs + zone.stretchAt(instantMs).offsetMs;
}

/**
 * The least wall time that is not over at that instant. In the second pass of an overlap all that the first pass showed
 * is over; at the very moment of a jump what it skips is not.
 */
function freshFrom(zone: Zone, instantMs: number): number {
  const { fromMs, offsetMs } = zone.stretchAt(instantMs);
  if (!Number.isFinite(fromMs)) return instantMs + offsetMs;
  const shownBefore = fromMs + zone.stretchAt(fromMs - 1).offsetMs;
  return instantMs === fromMs ? shownBefore : Math.max(instantMs + offsetMs, shownBefore);
}

/** Each wall time counts once; those that a jump skips are one instant, and none where one falls on the jump itself. */
function countOnce(walls: WallSet, zone: Zone, fromMs: number, toMs: number): number {
  let count = walls.count(freshFrom(zone, fromMs), freshFrom(zone, toMs));
  for (const { atMs, beforeMs, afterMs } of changesBetween(zone, fromMs, toMs)) {
    const skipped = afterMs > beforeMs ? walls.count(atMs + beforeMs, atMs + afterMs) : 0;
    if (skipped > 0) count -= walls.has(atMs + afterMs) ? skipped : skipped - 1;
  }
  return count;
}

/** Wall times count as often as they are shown. */
function countShown(walls: WallSet, zone: Zone, fromMs: number, toMs: number): number {
  if (toMs <= fromMs) return 0;
  let count = walls.count(wallAt(zone, fromMs), toMs + zone.stretchAt(toMs - 1).offsetMs);
  for (const { atMs, beforeMs, afterMs } of changesBetween(zone, fromMs + 1, toMs)) {
    count += walls.count(atMs + afterMs, atMs + beforeMs);
  }
  return count;
}
