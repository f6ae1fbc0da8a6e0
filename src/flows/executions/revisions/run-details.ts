/** What one message does beside changing the state, ready to be stored: the `sealed` of a `FlowRun`. */
import type { FlowRun } from '../../../contract/flows.ts';
import type { TaskCall } from '../../interpreter/effects.ts';
import type { Json, JsonObject } from '../../json.ts';

export interface RunDetails {
  /** The parts of the commit's entry, as JSON. */
  readonly entry: { readonly message: string; readonly delta: string; readonly out: string };
  /** The whole state as JSON, if it is time for a snapshot. */
  readonly snapshot: string | null;
  /** A document of its own, as JSON, that the execution follows from this revision on. */
  readonly document: string | null;
  readonly labels: readonly (readonly [name: string, value: string])[];
  readonly trackers: {
    readonly set: readonly { readonly name: string; readonly topic: string }[];
    readonly cleared: readonly string[];
  };
  readonly runs: readonly NodeRun[];
  readonly stoppedRuns: readonly Attempt[];
  readonly items: readonly WorkItem[];
  readonly endedItems: readonly Attempt[];
  readonly children: readonly Child[];
  readonly messages: readonly Sent[];
  readonly events: readonly ExecutionEvent[];
}

export interface Attempt {
  readonly nid: string;
  readonly attempt: number;
}

export interface NodeRun extends Attempt {
  readonly name: string;
  readonly input: Json;
  readonly timeoutMs: number;
  readonly work: Extract<TaskCall['work'], { kind: 'run' }>;
}

export interface WorkItem extends Attempt {
  readonly id: string;
  readonly name: string;
  readonly item: JsonObject;
  readonly input: Json;
  readonly dueMs: number | null;
}

export interface Child extends Attempt {
  readonly id: string;
  readonly flow: string;
  readonly isDetached: boolean;
  readonly input: Json;
}

/** A message to an execution. */
export interface Sent {
  readonly execution: string;
  readonly id: string;
  readonly point: 'answer' | 'signal' | 'operate';
  readonly body: JsonObject;
}

export interface ExecutionEvent {
  readonly type: string;
  readonly actor: string | null;
  readonly body: JsonObject;
}

export function detailsOf(run: FlowRun): RunDetails {
  return run.sealed as RunDetails;
}

export const noDetails: RunDetails = {
  entry: { message: 'null', delta: 'null', out: 'null' },
  snapshot: null,
  document: null,
  labels: [],
  trackers: { set: [], cleared: [] },
  runs: [],
  stoppedRuns: [],
  items: [],
  endedItems: [],
  children: [],
  messages: [],
  events: [],
};
