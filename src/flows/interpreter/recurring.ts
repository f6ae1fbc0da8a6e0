/**
 * Times that come again and again: `every` and `cron`.
 *
 * The next time follows from the planned one, not from when it was handled, so nothing drifts. A time that is overdue by more than ten
 * seconds was missed: `all` handles each, `one` the newest of them, `skip` none.
 */
import { compileSchedule, countInstants, instantAt, nextInstant, type Schedule } from '../../calendar/schedule.ts';
import type { Compiled } from '../expression/expression.ts';
import type { EventSpec } from '../language/step.ts';

type Recurring = Extract<EventSpec, { kind: 'every' | 'cron' }>;
type Period = (compiled: Compiled) => number;

const missedMs = 10_000;
/** Times that are handled at once; the others follow with the next timer, which is due already. */
const maxTimes = 100;
const leastPeriodMs = 1_000;

export function firstPlanned(spec: Recurring, nowMs: number, period: Period): number | undefined {
  return following(spec, nowMs, period);
}

/** Undefined: there is none before the end of the year 9999. */
function following(spec: Recurring, afterMs: number, period: Period): number | undefined {
  if (spec.kind === 'every') return afterMs + Math.max(leastPeriodMs, period(spec.every));
  return nextInstant(scheduleOf(spec.cron, spec.timezone), afterMs);
}

const schedules = new Map<string, Schedule>();
const maxSchedules = 1_000;

function scheduleOf(cron: string, timezone: string | null): Schedule {
  const key = `${timezone ?? ''} ${cron}`;
  const known = schedules.get(key);
  if (known !== undefined) return known;
  const schedule = compileSchedule({ startMs: 0, endMs: null, periodMs: null, cron, timezone });
  if (schedules.size >= maxSchedules) schedules.clear();
  schedules.set(key, schedule);
  return schedule;
}

/** Of times that nobody wants, most are passed over at once: a flow that runs each second may have missed a year. */
function newestPassed(spec: Recurring, plannedMs: number, nowMs: number, period: Period): number {
  if (spec.missed === 'all') return plannedMs;
  if (spec.kind === 'cron') return newestMissed(scheduleOf(spec.cron, spec.timezone), plannedMs, nowMs - missedMs);
  const periodMs = Math.max(leastPeriodMs, period(spec.every));
  const passed = Math.floor((nowMs - missedMs - 1 - plannedMs) / periodMs);
  return plannedMs + Math.max(0, passed) * periodMs;
}

function newestMissed(schedule: Schedule, plannedMs: number, beforeMs: number): number {
  const count = beforeMs > plannedMs ? countInstants(schedule, plannedMs, beforeMs) : 0;
  return count < 2 ? plannedMs : instantAt(schedule, plannedMs, beforeMs, count - 1);
}

/** The times from the planned one until now that are to be handled, and the next planned one. */
export function passedTimes(
  spec: Recurring,
  plannedMs: number,
  nowMs: number,
  period: Period,
): { readonly handled: readonly number[]; readonly nextMs: number | undefined } {
  const onTime: number[] = [];
  const missed: number[] = [];
  let next: number | undefined = newestPassed(spec, plannedMs, nowMs, period);
  while (next !== undefined && next <= nowMs && onTime.length + missed.length < maxTimes) {
    if (next < nowMs - missedMs) {
      // only `all` needs every one of them
      if (spec.missed !== 'all') missed.length = 0;
      missed.push(next);
    } else onTime.push(next);
    next = following(spec, next, period);
  }
  return { handled: spec.missed === 'skip' ? onTime : [...missed, ...onTime], nextMs: next };
}
