/**
 * Signals and other events: who takes them.
 *
 * 1. A signal is taken once: by the oldest `wait` that it fits, or else by the oldest `on`.
 * 2. A signal that fits nothing is kept for a day, and the next `wait` or `on` that it fits takes it. Nothing is lost by coming early:
 *    if too many are kept already, a further one is refused.
 * 3. That a step with a tag was entered or left is heard by everything that listens at that moment, and not kept.
 */
import { type Json, type JsonObject, sizeOf } from '../json.ts';
import { type EventSpec, eventsOf, type Step } from '../language/step.ts';
import { failureOf, flowLimits, type HeardEvent, type Run } from './run.ts';
import type { EarlySignal, Refusal } from './state.ts';

interface Listener {
  readonly nid: string;
  readonly step: Step;
}

function listeners(run: Run): Listener[] {
  return Object.entries(run.draft.nodes).flatMap(([nid, { at, phase }]) => {
    const step = phase === 'run' ? run.flow.byPosition.get(at) : undefined;
    return step !== undefined && eventsOf(step).length > 0 ? [{ nid, step }] : [];
  });
}

/** A condition that cannot be evaluated for this event does not hold: the event is for others. */
function hears(run: Run, { nid, step }: Listener, event: HeardEvent): boolean {
  try {
    return run.rules(step).heard?.(run, nid, step, event) === true;
  } catch (error) {
    failureOf(error, nid);
    return false;
  }
}

/** A signal has come. Returns why it is refused. */
export function hear(run: Run, name: string, payload: Json): Refusal | undefined {
  const event: HeardEvent = { kind: 'signal', name, payload };
  const all = listeners(run);
  const waits = all.filter(({ step }) => step.verb === 'wait');
  const handlers = all.filter(({ step }) => step.verb === 'on');
  if ([...waits, ...handlers].some((listener) => hears(run, listener, event))) return undefined;
  const kept = recentSignals(run);
  const chars = sizeOf(payload, flowLimits.earlyChars);
  if (!hasRoom(kept, chars))
    return { code: 'too_many_signals', detail: `${kept.length} signals that no step waits for are kept already` };
  run.draft.early = [...kept, { name, payload, atMs: run.nowMs, chars }];
  return undefined;
}

/** Whether a signal that nothing waits for could be kept. */
export function canKeep(run: Run, payload: Json): boolean {
  return hasRoom(recentSignals(run), sizeOf(payload, flowLimits.earlyChars));
}

function recentSignals({ draft, nowMs }: Run): readonly EarlySignal[] {
  const isRecent = ({ atMs }: EarlySignal): boolean => atMs > nowMs - flowLimits.earlyMs;
  return draft.early.every(isRecent) ? draft.early : draft.early.filter(isRecent);
}

function hasRoom(kept: readonly EarlySignal[], chars: number): boolean {
  const together = kept.reduce((sum, signal) => sum + signal.chars, chars);
  return kept.length < flowLimits.earlySignals && together <= flowLimits.earlyChars;
}

/** A step with a tag was entered or left. */
export function announce(run: Run, kind: 'entered' | 'left', tag: string): void {
  if (!run.flow.heardTags.has(tag)) return;
  for (const listener of listeners(run)) hears(run, listener, { kind, tag });
}

/** Gives early signals to a step that has begun to listen, until it takes no more. */
export function takeEarly(run: Run, nid: string, step: Step): void {
  for (const signal of run.draft.early) {
    if (run.draft.node(nid)?.phase !== 'run' || run.memory(nid)['isDeaf'] === true) return;
    const { name, payload } = signal;
    if (hears(run, { nid, step }, { kind: 'signal', name, payload }))
      run.draft.early = run.draft.early.filter((other) => other !== signal);
  }
}

/** Whether an event is what a step listens to. */
export function fits(run: Run, nid: string, spec: EventSpec, event: HeardEvent): boolean {
  if (spec.kind === 'signal' && event.kind === 'signal') {
    if (run.evaluate(nid, spec.name) !== event.name) return false;
    return spec.match === null || run.holds(nid, spec.match, { event: factsOf(event) });
  }
  return spec.kind === event.kind && 'tag' in spec && 'tag' in event && spec.tag === event.tag;
}

/** An event as expressions see it: `event`. */
export function factsOf(event: HeardEvent): JsonObject {
  if (event.kind === 'signal') return { name: event.name, payload: event.payload };
  return { name: event.kind, tag: event.tag };
}

/** The result of a `wait`. */
export function payloadOf(event: HeardEvent): Json {
  return event.kind === 'signal' ? event.payload : factsOf(event);
}
