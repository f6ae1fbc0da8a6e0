/**
 * The calculator of a trigger's instants.
 *
 * `start` is always an instant, also where the cron expression does not name it; `end` never is, nor anything after it.
 * After `start` come the multiples of the period, or the moments that the expression names. In a time zone:
 *
 * - An expression that names its hours (`30 2 * * *`, `0 9-17 * * *`) runs each wall time once: the first time it is
 *   shown where clocks are set back, and at the moment of the jump where they are set forward past it.
 * - An expression whose hours are a wildcard or stepped (`*\/15 * * * *`, `0 *\/2 * * *`) follows elapsed time: it runs
 *   whenever the clock shows a named time, in both passes of an hour shown twice, and not for one that is skipped.
 * - A period of whole days keeps the wall-clock time of `start`, by the rule of named hours; any other is elapsed time.
 *
 * Without a zone all of it is UTC. Instants strictly increase, and none lies beyond the year 9999.
 */
import type { CronPattern } from './cron.ts';
import { nextWall, readCron } from './cron-walk.ts';
import { accepted } from './values.ts';
import { firstShown, type Zone, zoneOf } from './zone.ts';

/** Exactly one of `periodMs` and `cron` is not null. */
export interface ScheduleSpec {
  readonly startMs: number;
  /** Exclusive. */
  readonly endMs: number | null;
  readonly periodMs: number | null;
  readonly cron: string | null;
  /** An IANA name; null: UTC. */
  readonly timezone: string | null;
}

export interface Schedule {
  readonly startMs: number;
  /** Exclusive; never null: time itself ends with the year 9999. */
  readonly endMs: number;
  /** The first instant after `afterMs`, which is `startMs` or later; `endMs` is not looked at. */
  readonly following: (afterMs: number) => number | undefined;
}

const endOfTimeMs = Date.UTC(10_000, 0, 1);
const dayMs = 86_400_000;

/** Does the parsing once. The spec must have passed validation; what has not throws. */
export function compileSchedule(spec: ScheduleSpec): Schedule {
  const endMs = Math.min(spec.endMs ?? endOfTimeMs, endOfTimeMs);
  return { startMs: spec.startMs, endMs, following: followingOf(spec) };
}

/** The first instant strictly after `afterMs`, or undefined when there is none. */
export function nextInstant(schedule: Schedule, afterMs: number): number | undefined {
  const next = afterMs < schedule.startMs ? schedule.startMs : schedule.following(afterMs);
  return next === undefined || next >= schedule.endMs ? undefined : next;
}

/** The instants with `fromMs` ≤ instant < `toMs`, in order, worked out as they are asked for. */
export function* instantsBetween(schedule: Schedule, fromMs: number, toMs: number): Generator<number, void, undefined> {
  let instant = nextInstant(schedule, fromMs - 1);
  while (instant !== undefined && instant < toMs) {
    yield instant;
    instant = nextInstant(schedule, instant);
  }
}

function followingOf(spec: ScheduleSpec): Schedule['following'] {
  const { startMs, periodMs, cron, timezone } = spec;
  const zone = zoneOf(timezone);
  if (periodMs !== null) {
    const keepsWallTime = timezone !== null && periodMs % dayMs === 0;
    return keepsWallTime ? wallPeriod(zone, startMs, periodMs) : elapsedPeriod(startMs, periodMs);
  }
  const pattern = accepted(readCron(cron ?? ''));
  return (afterMs) => (pattern.namesHours ? nextNamed : nextElapsed)(pattern, zone, afterMs);
}

function elapsedPeriod(startMs: number, periodMs: number): Schedule['following'] {
  return (afterMs) => startMs + (Math.floor((afterMs - startMs) / periodMs) + 1) * periodMs;
}

function wallPeriod(zone: Zone, startMs: number, periodMs: number): Schedule['following'] {
  const startWall = wallAt(zone, startMs);
  return (afterMs) => {
    // a wall time that is shown by now cannot lie ahead, so only later ones are tried
    let wall = startWall + (Math.floor((wallAt(zone, afterMs) - startWall) / periodMs) + 1) * periodMs;
    if (wall === startWall) wall += periodMs;
    while (wall < endOfTimeMs && firstShown(zone, wall) <= afterMs) wall += periodMs;
    return wall < endOfTimeMs ? firstShown(zone, wall) : undefined;
  };
}

/** Each wall time once. In the second pass of an overlap, what the first pass showed is over. */
function nextNamed(pattern: CronPattern, zone: Zone, afterMs: number): number | undefined {
  const { fromMs, offsetMs } = zone.stretchAt(afterMs);
  const shownBefore = Number.isFinite(fromMs) ? fromMs + zone.stretchAt(fromMs - 1).offsetMs : fromMs;
  const wall = nextWall(pattern, Math.max(afterMs + 1 + offsetMs, shownBefore));
  return wall === undefined || wall >= endOfTimeMs ? undefined : firstShown(zone, wall);
}

/** Whenever the clock shows a named time: stretch by stretch, from the first moment after `afterMs`. */
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
