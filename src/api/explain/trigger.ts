/** Explains when a trigger fires next and what prevents it, and whether it fired for an instant. */
import { compileSchedule, countInstants, nextInstant, type Schedule } from '../../calendar/schedule.ts';
import { specOf } from '../../scheduler/trigger-schedule.ts';
import type { ApiContext } from '../context.ts';
import { schedulerAway } from './fleet.ts';
import {
  type CatchupLeft,
  type ExplainedTrigger,
  findInstant,
  findTriggerFacts,
  listCatchups,
  type TriggerAt,
  type TriggerFacts,
} from './graph-queries.ts';
import { pauseOf } from './pause.ts';
import { formatCount, type Finding, finding, type Findings, jobNameOf, type Link, formatTime } from './findings.ts';

type TriggerState = Findings['state'];

export interface Verdict {
  readonly state: TriggerState;
  readonly finding: Finding;
}

/** Judges one instant of a trigger. `who` is the subject of the sentence. */
export function judgeInstant(trigger: TriggerAt, who: string, nowMs: number): Verdict {
  const { instant } = trigger;
  const instantMs = instant.getTime();
  const schedule = compileSchedule(specOf(trigger));
  const due = new Date(instantMs + trigger.offset_ms);
  const data = { trigger: trigger.id, instant, due_at: due };
  const verdict = (state: TriggerState, code: Finding['code'], message: string, next?: string): Verdict => {
    return { state, finding: finding(code, message, data, next) };
  };
  if (trigger.fired) return verdict('fired', 'trigger_fired', `${who} fired for ${formatTime(instant)}`);
  if (trigger.removed) return verdict('removed', 'trigger_removed', `${who} is no longer part of its job`);
  if (nextInstant(schedule, instantMs - 1) !== instantMs) {
    const message = `${who} does not fire for ${formatTime(instant)}${nearest(schedule, instantMs)}`;
    return verdict('off_schedule', 'trigger_off_schedule', message);
  }
  if (trigger.catching_up) {
    const message = `${who} missed ${formatTime(instant)} and fires it between others, to catch up`;
    return verdict('catching_up', 'trigger_catching_up', message);
  }
  const passed = trigger.latest !== null && instant <= trigger.latest;
  if (passed) return verdict('skipped', 'trigger_skipped', `${who} skipped ${formatTime(instant)}${policyOf(trigger)}`);
  if (trigger.paused) {
    const message = `${who} does not fire while its job is paused; it would be due at ${formatTime(due)}`;
    return verdict('paused', 'trigger_paused', message, `millrace unpause ${jobNameOf(trigger)}`);
  }
  if (due.getTime() > nowMs) return verdict('scheduled', 'trigger_not_due', `${who} is due at ${formatTime(due)}`);
  return verdict('due', 'trigger_overdue', `${who} was due at ${formatTime(due)} and has not fired yet`);
}

function nearest(schedule: Schedule, instantMs: number): string {
  if (instantMs < schedule.startMs) return `, for it starts with ${formatTime(new Date(schedule.startMs))}`;
  if (instantMs >= schedule.endMs) return `, for it ends before ${formatTime(new Date(schedule.endMs))}`;
  const next = nextInstant(schedule, instantMs);
  return next === undefined ? '' : `; its next instant after that is ${formatTime(new Date(next))}`;
}

function policyOf(trigger: TriggerAt): string {
  if (trigger.catchup === 'none') return ': it was missed, and catchup is none';
  if (trigger.catchup === 'last') return ': it was missed, and catchup fires the last one only';
  if (trigger.catchup_window_ms !== null) return ': it was missed, and lies outside of the catchup window';
  return ', or its record has been deleted';
}

/** Explains the trigger as a whole. */
export async function explainTrigger(ctx: ApiContext, trigger: ExplainedTrigger): Promise<Findings> {
  const [facts, catchups, scheduler, pause] = await Promise.all([
    findTriggerFacts(ctx.db, trigger.id),
    listCatchups(ctx.db, trigger.id),
    schedulerAway(ctx),
    trigger.paused ? pauseOf(ctx, trigger) : undefined,
  ]);
  const chain = appliedBy(trigger);
  if (trigger.removed) return { state: 'removed', findings: [removedTrigger(trigger), ...lastFired(facts)], chain };
  const coming = nextOf(trigger, facts, ctx.time.now());
  const caughtUp = catchups.map((left) => leftOf(trigger, left));
  const blocked = [pause, scheduler].flatMap((each) => each ?? []);
  return {
    state: stateOf(trigger, coming.state, caughtUp.length),
    findings: [...blocked, coming.finding, ...caughtUp, ...unused(facts), ...lastFired(facts)],
    chain,
  };
}

function stateOf(trigger: ExplainedTrigger, coming: TriggerState, catchups: number): TriggerState {
  if (trigger.paused) return 'paused';
  return catchups > 0 && coming !== 'due' ? 'catching_up' : coming;
}

/** Uses the last firing as well, because the trigger's marks may lag behind it. */
export function nextOf(trigger: ExplainedTrigger, facts: TriggerFacts | undefined, nowMs: number): Verdict {
  const schedule = compileSchedule(specOf(trigger));
  const fired = facts?.last_cause === 'schedule' ? (facts.last_fired?.getTime() ?? 0) : 0;
  const latest = trigger.latest?.getTime() ?? schedule.startMs - 1;
  const nextMs = nextInstant(schedule, Math.max(latest, fired));
  if (nextMs === undefined) {
    const message = `no instant of it is left${trigger.end_at === null ? '' : ` before its end, ${formatTime(trigger.end_at)}`}`;
    return {
      state: 'ended',
      finding: finding('trigger_ended', message, { trigger: trigger.id, end_at: trigger.end_at }),
    };
  }
  const [instant, due] = [new Date(nextMs), new Date(nextMs + trigger.offset_ms)];
  const data = { trigger: trigger.id, instant, due_at: due };
  const forWhat = trigger.offset_ms === 0 ? '' : `, for ${formatTime(instant)}`;
  if (due.getTime() > nowMs) {
    const finds = finding('trigger_not_due', `its next instant is due at ${formatTime(due)}${forWhat}`, data);
    return { state: 'scheduled', finding: finds };
  }
  const late = finding('trigger_overdue', `it was due at ${formatTime(due)}${forWhat} and has not fired since`, data);
  return { state: 'due', finding: late };
}

function leftOf(trigger: ExplainedTrigger, left: CatchupLeft): Finding {
  const schedule = compileSchedule(specOf(trigger));
  const all = countInstants(schedule, left.from_at.getTime(), left.to_at.getTime());
  const open = Math.ceil((all * (left.pieces - left.next_piece)) / left.pieces);
  const message = `about ${formatCount(open, 'missed instant')} from ${formatTime(left.from_at)} on are still to be fired`;
  return finding('trigger_catching_up', message, { trigger: trigger.id, ...left, instants: all, left: open });
}

function removedTrigger(trigger: ExplainedTrigger): Finding {
  return finding('trigger_removed', 'it is no longer part of its job', { trigger: trigger.id });
}

function unused({ tasks }: TriggerFacts): Finding[] {
  return tasks > 0 ? [] : [finding('trigger_unused', 'no task depends on it, so its firing starts nothing')];
}

function lastFired(facts: TriggerFacts): Finding[] {
  if (facts.last_fired === null) return [];
  const message = `it fired last for ${formatTime(facts.last_fired)}`;
  return [finding('trigger_fired', message, { instant: facts.last_fired, cause: facts.last_cause })];
}

function appliedBy(trigger: ExplainedTrigger): Link[] {
  if (trigger.actor === null || trigger.applied_at === null) return [];
  const message = `${trigger.actor} applied version ${trigger.version} of ${jobNameOf(trigger)}`;
  return [{ what: 'person', id: trigger.actor, at: trigger.applied_at.toISOString(), message }];
}

/** Explains one instant of the trigger. */
export async function explainInstant(ctx: ApiContext, trigger: ExplainedTrigger, instant: Date): Promise<Findings> {
  const [{ causes, catching_up }, facts, scheduler] = await Promise.all([
    findInstant(ctx.db, trigger.id, instant),
    findTriggerFacts(ctx.db, trigger.id),
    schedulerAway(ctx),
  ]);
  const at = { ...trigger, instant, catching_up, fired: causes.length > 0 };
  const { state, finding: found } = judgeInstant(at, 'it', ctx.time.now());
  if (state === 'fired') {
    const whole = { ...found, data: { ...found.data, causes } };
    return { state, findings: [whole, ...unused(facts)], chain: [firedLink(at, causes), ...appliedBy(trigger)] };
  }
  const away = scheduler === undefined ? [] : [scheduler];
  // a due instant waits only for a scheduler, so that finding comes first
  const both = state === 'due' ? [...away, found] : [found, ...away];
  return { state, findings: [...both, ...unused(facts)], chain: appliedBy(trigger) };
}

function firedLink({ id, instant }: TriggerAt, causes: readonly string[]): Link {
  const [first = 'schedule'] = causes;
  const how = causes.map((cause) => (cause === 'schedule' ? 'on schedule' : `by the backfill ${cause}`));
  const message = `it fired for ${formatTime(instant)} ${how.join(', and ')}`;
  const source = first === 'schedule' ? { what: 'trigger' as const, id } : { what: 'backfill' as const, id: first };
  return { ...source, at: null, message };
}
