/**
 * The timeline of a tested flow: what happened, when, and at which step. `testFlow` gathers it, and `millrace flow test` prints it.
 *
 * An entry about a step names its place in the document; one about the whole execution has no place.
 */
import type { Effect } from '../interpreter/effects.ts';
import type { FlowError, FlowState, MessageBody } from '../interpreter/state.ts';
import type { Json } from '../json.ts';
import type { Flow, Step } from '../language/step.ts';

/**
 * - `called`: a task, with its input. `asked`: a person, with title and form. `started`: another flow.
 * - `answered`, `failed`, `stopped`: how a task ended.
 * - `fired`: a timer. `signalled`: a signal arrived. `sent`: a signal to another execution.
 * - `operated`: what a person did. `incident`: a step failed, and nothing handles it.
 * - `launched` and `ended` are about the execution.
 */
export type TimelineEvent =
  | 'launched'
  | 'called'
  | 'asked'
  | 'started'
  | 'answered'
  | 'failed'
  | 'stopped'
  | 'fired'
  | 'signalled'
  | 'sent'
  | 'operated'
  | 'incident'
  | 'ended';

export interface TimelineEntry {
  readonly at: Date;
  /** The place in the document, such as `steps[0]`; null: the whole execution. */
  readonly path: string | null;
  readonly event: TimelineEvent;
  /** Of a task, flow, signal, timer or action; of `ended`, how. */
  readonly name: string | null;
  readonly value: Json;
}

type Entry = Omit<TimelineEntry, 'at'>;

export interface Interpretation {
  readonly flow: Flow;
  readonly body: MessageBody;
  readonly before: FlowState;
  readonly after: FlowState;
  readonly effects: readonly Effect[];
}

/** The entries of one message, in the order in which people read them: the cause first. */
export function entriesOf({ flow, body, before, after, effects }: Interpretation): Entry[] {
  const find = (nid: string): Step | undefined =>
    flow.byPosition.get((after.nodes[nid] ?? before.nodes[nid])?.at ?? '');
  return [
    ...causeOf(body, find),
    ...incidentsOf(before, after, find),
    ...effects.flatMap((effect) => effectOf(effect, find)),
    ...endingOf(before, after),
  ];
}

type Find = (nid: string) => Step | undefined;

function causeOf(body: MessageBody, find: Find): Entry[] {
  switch (body.point) {
    case 'launch':
      return [{ path: null, event: 'launched', name: null, value: body.input }];
    case 'answer':
      return answerOf(body, find(body.nid));
    case 'timer':
      return timerOf(body.name, find);
    case 'signal':
      return [{ path: null, event: 'signalled', name: body.name, value: body.payload }];
    case 'operate':
      return [{ path: null, event: 'operated', name: body.operation.action, value: null }];
    case 'continue':
      return [];
    default:
      return body satisfies never;
  }
}

function answerOf({ outcome }: Extract<MessageBody, { point: 'answer' }>, step: Step | undefined): Entry[] {
  const about = { path: step?.path ?? null, name: nameOf(step) };
  if (outcome.kind === 'done') return [{ ...about, event: 'answered', value: outcome.result }];
  if (outcome.kind === 'cancelled') return [];
  return [{ ...about, event: 'failed', value: { code: outcome.code, message: outcome.message } }];
}

function timerOf(name: string, find: Find): Entry[] {
  const slash = name.lastIndexOf('/');
  const step = find(name.slice(0, slash));
  return [{ path: step?.path ?? null, event: 'fired', name: name.slice(slash + 1), value: null }];
}

function incidentsOf(before: FlowState, after: FlowState, find: Find): Entry[] {
  return Object.entries(after.nodes).flatMap(([nid, { phase, error }]) => {
    if (phase !== 'incident' || error === undefined || before.nodes[nid]?.error === error) return [];
    const step = find(nid);
    return [{ path: step?.path ?? null, event: 'incident', name: nameOf(step), value: problemOf(error) }];
  });
}

function effectOf(effect: Effect, find: Find): Entry[] {
  switch (effect.kind) {
    case 'task': {
      const about = { path: find(effect.nid)?.path ?? null, name: effect.name };
      if (effect.work.kind === 'human') return [{ ...about, event: 'asked', value: effect.work.item }];
      // the input of work on a worker is in its block
      return [{ ...about, event: 'called', value: effect.work.kind === 'run' ? effect.work.block : effect.input }];
    }
    case 'launch':
      return [{ path: find(effect.nid)?.path ?? null, event: 'started', name: effect.flow, value: effect.input }];
    case 'stop': {
      const step = find(effect.nid);
      return [{ path: step?.path ?? null, event: 'stopped', name: nameOf(step), value: null }];
    }
    case 'signal':
      return [{ path: null, event: 'sent', name: effect.name, value: { to: effect.to, payload: effect.payload } }];
    case 'set_timer':
    case 'clear_timer':
      return [];
    default:
      return effect satisfies never;
  }
}

function endingOf(before: FlowState, { ending, ret }: FlowState): Entry[] {
  if (ending === null || before.ending !== null) return [];
  const value = ending.kind === 'failed' ? problemOf(ending.error) : ret;
  return [{ path: null, event: 'ended', name: ending.kind, value }];
}

function problemOf({ code, message }: FlowError): Json {
  return { code, message };
}

function nameOf(step: Step | undefined): string | null {
  return step?.verb === 'task' ? step.name : null;
}
