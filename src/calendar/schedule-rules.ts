/**
 * The rules that give the instants after a trigger's `start`: periods and cron expressions, on a clock in a zone. Each rule
 * finds the next instant, and counts instants without walking them. `schedule.ts` describes the rules, and adds `start`
 * and `end`.
 */
import { dayMs } from '../kernel/text/duration.ts';
import type { CronPattern } from './cron.ts';
import { namedWalls, steppedWalls, type WallSet } from './cron-count.ts';
import { nextWall } from './cron-walk.ts';
import { changesBetween, firstShown, type Zone } from './zone.ts';

/** Both members cover only instants after `start`. */
export interface Rule {
  /** The first instant after `afterMs`, which is `start` or later. */
  readonly following: (afterMs: number) => number | undefined;
  /** Counts the instants with `fromMs` ≤ instant < `toMs`. */
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

/** Whole days on the wall clock. Fires once for each wall time. */
export function wallPeriod(zone: Zone, startMs: number, periodMs: number): Rule {
  const startWall = wallAt(zone, startMs);
  const walls = steppedWalls(startWall, periodMs);
  return {
    following(afterMs) {
      // a wall time that the clock has shown is over, so try only later ones
      let wall = startWall + (Math.floor((wallAt(zone, afterMs) - startWall) / periodMs) + 1) * periodMs;
      while (wall < endOfTimeMs && firstShown(zone, wall) <= afterMs) wall += periodMs;
      return wall < endOfTimeMs ? firstShown(zone, wall) : undefined;
    },
    count: (fromMs, toMs) => countOnce(walls, zone, fromMs, toMs),
  };
}

/** Fires once for each wall time. */
export function namedHours(pattern: CronPattern, zone: Zone): Rule {
  return {
    following(afterMs) {
      const wall = nextWall(pattern, firstUnshownWall(zone, afterMs + 1));
      return wall === undefined || wall >= endOfTimeMs ? undefined : firstShown(zone, wall);
    },
    count: (fromMs, toMs) => countOnce(namedWalls(pattern), zone, fromMs, toMs),
  };
}

/** Fires whenever the clock shows a named time. */
export function elapsedHours(pattern: CronPattern, zone: Zone): Rule {
  return {
    following: (afterMs) => nextElapsed(pattern, zone, afterMs),
    count: (fromMs, toMs) => countShown(namedWalls(pattern), zone, fromMs, toMs),
  };
}

/** Searches stretch by stretch, from the first moment after `afterMs`. */
function nextElapsed(pattern: CronPattern, zone: Zone, afterMs: number): number | undefined {
  let fromMs = afterMs + 1;
  let earlier: number | undefined;
  for (let stretches = 0; fromMs < endOfTimeMs; stretches++) {
    const { toMs, offsetMs } = zone.stretchAt(fromMs);
    const wall = nextWall(pattern, fromMs + offsetMs);
    if (wall !== undefined && wall < toMs + offsetMs) return wall - offsetMs;
    // this stretch has no more; the next one may repeat some times, the stretches after that show only later times
    if (stretches > 0 && wall === undefined) return undefined;
    fromMs = wall !== undefined && wall === earlier ? Math.max(toMs, wall - 2 * dayMs) : toMs;
    earlier = wall;
  }
  return undefined;
}

function wallAt(zone: Zone, instantMs: number): number {
  return instantMs + zone.stretchAt(instantMs).offsetMs;
}

/**
 * The least wall time that is not over at `instantMs`. In the second pass of an overlap, all times of the first pass are
 * over. At the moment of a jump, the times that it skips are not over.
 */
function firstUnshownWall(zone: Zone, instantMs: number): number {
  const { fromMs, offsetMs } = zone.stretchAt(instantMs);
  if (!Number.isFinite(fromMs)) return instantMs + offsetMs;
  const shownBefore = fromMs + zone.stretchAt(fromMs - 1).offsetMs;
  return instantMs === fromMs ? shownBefore : Math.max(instantMs + offsetMs, shownBefore);
}

/** Counts each wall time once. All times that a jump skips are one instant, unless a named time falls on the jump itself. */
function countOnce(walls: WallSet, zone: Zone, fromMs: number, toMs: number): number {
  let count = walls.count(firstUnshownWall(zone, fromMs), firstUnshownWall(zone, toMs));
  for (const { atMs, beforeMs, afterMs } of changesBetween(zone, fromMs, toMs)) {
    const skipped = afterMs > beforeMs ? walls.count(atMs + beforeMs, atMs + afterMs) : 0;
    if (skipped > 0) count -= walls.has(atMs + afterMs) ? skipped : skipped - 1;
  }
  return count;
}

/** Counts a wall time as often as the clock shows it. */
function countShown(walls: WallSet, zone: Zone, fromMs: number, toMs: number): number {
  if (toMs <= fromMs) return 0;
  let count = walls.count(wallAt(zone, fromMs), toMs + zone.stretchAt(toMs - 1).offsetMs);
  for (const { atMs, beforeMs, afterMs } of changesBetween(zone, fromMs + 1, toMs)) {
    count += walls.count(atMs + afterMs, atMs + beforeMs);
  }
  return count;
}
