/**
 * One run of the interpreter over an execution: its draft, the messages between nodes that are still to be worked off, and the
 * effects so far. Verbs and the life of nodes are built on it.
 */
import { type Compiled, fuelUnits } from '../expression/expression.ts';
import { brief, ExpressionError, Fuel, resultLimits } from '../expression/values.ts';
import { isObject, type Json, type JsonObject, sizeOf } from '../json.ts';
import { durationMs } from '../language/read-duration.ts';
import type { Flow, Step, TaskWork } from '../language/step.ts';
import type { Draft } from './draft.ts';
import type { Effect } from './effects.ts';
import { resultOf, scopeOf, setResult } from './fields.ts';
import type { FlowError, Frame, Role, Why } from './state.ts';
import { Todo } from './todo.ts';

/** The world as an execution sees it during one run. */
export interface Circumstances {
  readonly nowMs: number;
  /** Makes chance repeatable: the same run has the same pauses. */
  readonly seed: string;
  readonly execution: { readonly id: string; readonly key: string | null };
  /** How many executions called each other until this one. */
  readonly depth: number;
  /** After so many inner messages, the rest is left for the next run. */
  readonly maxMessages: number;
  /** Whether the time for this run is over. */
  isSpent(): boolean;
  /** The link by which a person, or a receiver of a callback, answers a task. */
  link(nid: string, attempt: number): string;
  /** An id for what this attempt of a node creates. The same one whenever it is asked for. */
  newId(nid: string, attempt: number): string;
}

/** A step fails with this error. */
export class StepFailure extends Error {
  readonly code: string;
  readonly data: Json;
  readonly isFinal: boolean;

  constructor(code: string, message: string, more: { readonly data?: Json; readonly isFinal?: boolean } = {}) {
    super(message);
    this.name = 'StepFailure';
    this.code = code;
    this.data = more.data ?? null;
    this.isFinal = more.isFinal === true;
  }
}

export const flowLimits = {
  nodes: 10_000,
  /** Executions that call each other. */
  depth: 64,
  /** Characters of one value, as JSON. */
  valueChars: resultLimits.chars,
  /** After it has added so many characters, a run is committed. The rest follows with the next one. */
  runChars: 2 * resultLimits.chars,
  /** Work of all expressions that one inner message evaluates. A neighbour in the same process waits for it. */
  fuelUnits: 2 * fuelUnits,
  /** Signals that nothing waits for yet, and their payloads together. */
  earlySignals: 1_000,
  earlyChars: 4 * 1024 * 1024,
  earlyMs: 24 * 3_600_000,
  seen: 1_000,
  /** Messages that wait while the execution is paused. Answers and timers are always kept: there is one for each node. */
  heldMessages: 1_000,
  /** Events that wait for a handler that handles one after the other. */
  queuedEvents: 1_000,
} as const;

/** What a verb does. */
export interface VerbRules<S extends Step = Step> {
  /** Begins an attempt. */
  execute(run: Run, nid: string, step: S): void;
  /** A main child has ended, and not by failing. */
  ended?(run: Run, nid: string, step: S, child: ChildEnd): void;
  /** A timer of the verb is due. */
  ticked?(run: Run, nid: string, step: S, timer: { readonly name: string; readonly plannedMs: number }): void;
  /** Whether it takes the event. */
  heard?(run: Run, nid: string, step: S, event: HeardEvent): boolean;
  /** Ends work outside of the execution. Returns whether its answer is awaited. */
  close?(run: Run, nid: string, step: S, isKill: boolean): boolean;
}

export interface ChildEnd {
  readonly nid: string;
  readonly at: string;
  readonly kind: 'done' | 'cancelled' | 'left';
  readonly frame: Frame | null;
  readonly locals: JsonObject | null;
}

export type HeardEvent =
  | { readonly kind: 'signal'; readonly name: string; readonly payload: Json }
  | { readonly kind: 'entered' | 'left'; readonly tag: string };

/** A document that was swapped in, and its flow. */
export interface Swapped {
  readonly flow: Flow;
  readonly document: JsonObject;
}

export class Run {
  #flow: Flow;
  #swapped: Swapped | null = null;
  readonly draft: Draft;
  readonly how: Circumstances;
  readonly rules: (step: Step) => VerbRules;
  readonly effects: Effect[] = [];
  readonly todo = new Todo();
  #chance = 0;
  #fuelLeft: number = flowLimits.fuelUnits;
  #addedChars = 0;

  constructor(flow: Flow, draft: Draft, how: Circumstances, rules: (step: Step) => VerbRules) {
    this.#flow = flow;
    this.draft = draft;
    this.how = how;
    this.rules = rules;
  }

  get flow(): Flow {
    return this.#flow;
  }

  get swapped(): Swapped | null {
    return this.#swapped;
  }

  /** The execution follows another document from here on. */
  swapTo(flow: Flow, document: JsonObject): void {
    this.#flow = flow;
    this.#swapped = { flow, document };
  }

  get nowMs(): number {
    return this.how.nowMs;
  }

  stepAt(at: string): Step {
    const step = this.flow.byPosition.get(at);
    if (step === undefined) throw new StepFailure('no_such_step', `the flow has no step at ${at}`);
    return step;
  }

  /** The value of an expression as a node sees it. `more`: further variables. */
  evaluate(nid: string | null, compiled: Compiled, more: JsonObject = {}): Json {
    const execution = { ...this.how.execution };
    const around = { nowMs: this.nowMs, execution, links: (fuel: Fuel) => this.#links(fuel) };
    const units = Math.min(fuelUnits, this.#fuelLeft);
    const fuel = new Fuel(units);
    try {
      return compiled.evaluate(scopeOf(this.draft, nid, around, more), fuel);
    } finally {
      this.#fuelLeft -= units - Math.max(0, fuel.left);
      this.#addedChars += fuel.resultChars;
    }
  }

  /** Whether this run has made so much that it has to be committed before it goes on. */
  get isFull(): boolean {
    return this.#addedChars > flowLimits.runChars;
  }

  noteAdded(value: Json): void {
    this.#addedChars += sizeOf(value, flowLimits.runChars);
  }

  /** Expressions of the next inner message have their own fuel. */
  refuel(): void {
    this.#fuelLeft = flowLimits.fuelUnits;
  }

  holds(nid: string | null, compiled: Compiled, more: JsonObject = {}): boolean {
    const value = this.evaluate(nid, compiled, more);
    if (typeof value !== 'boolean')
      throw new StepFailure('expression_error', `a condition must be true or false, not ${brief(value)}`);
    return value;
  }

  evaluateDuration(nid: string | null, compiled: Compiled): number {
    return durationMs(this.evaluate(nid, compiled));
  }

  evaluateText(nid: string | null, compiled: Compiled, what: string): string {
    const value = this.evaluate(nid, compiled);
    if (typeof value !== 'string' || value === '')
      throw new StepFailure('expression_error', `${what} must be text, not ${brief(value)}`);
    return value;
  }

  #links(fuel: Fuel): JsonObject {
    fuel.spend(this.draft.nodeCount / 16);
    const links: Record<string, Json> = {};
    for (const [nid, { at, attempt, phase }] of Object.entries(this.draft.nodes)) {
      const step = this.flow.byPosition.get(at);
      if (step?.verb !== 'task' || !isAnsweredByLink(step.work) || phase !== 'run') continue;
      fuel.spend(linkUnits);
      links[step.name] = this.how.link(nid, attempt);
    }
    return links;
  }

  /** Creates a node for a step and lets it begin. Returns its id. */
  start(
    parent: string | null,
    at: string,
    more: { role?: Role; locals?: JsonObject; vars?: JsonObject; frame?: Frame } = {},
  ): string {
    const { role = 'main', ...rest } = more;
    // what ends a step must not fail because there are many others
    if (this.draft.nodeCount >= flowLimits.nodes && role !== 'handler' && role !== 'undo')
      throw new StepFailure('too_many_nodes', `an execution has at most ${flowLimits.nodes} nodes at a time`);
    const nid = `${at}-${this.draft.nextVisit()}`;
    const base = { at, parent, role, phase: 'run', since: this.nowMs, attempt: 1, children: [] } as const;
    this.draft.put(nid, { ...base, ...rest });
    this.draft.addChild(parent, nid);
    this.todo.add({ do: 'enter', nid });
    return nid;
  }

  close(nid: string, why: Why): void {
    this.todo.add({ do: 'close', nid, why });
  }

  /** Ends a node well, with a result or with that of its last step. Its background steps are cancelled first. */
  complete(nid: string, ret?: Json): void {
    if (ret !== undefined) {
      checkSize(ret);
      setResult(this.draft, nid, ret);
    }
    this.close(nid, { kind: 'done' });
  }

  resultOf(nid: string): Json {
    return resultOf(this.draft, nid);
  }

  memory(nid: string): JsonObject {
    return this.draft.node(nid)?.memory ?? {};
  }

  remember(nid: string, change: JsonObject): void {
    this.draft.patch(nid, { memory: { ...this.memory(nid), ...change } });
  }

  arm(nid: string, name: string, dueMs: number, plannedMs?: number): void {
    const node = this.draft.node(nid);
    if (node === undefined) return;
    const generation = this.draft.nextGeneration();
    const timer = { generation, dueMs: Math.ceil(dueMs), ...(plannedMs !== undefined && { plannedMs }) };
    this.draft.patch(nid, { timers: { ...node.timers, [name]: timer } });
    this.effects.push({ kind: 'set_timer', name: `${nid}/${name}`, generation, dueMs: timer.dueMs });
  }

  /** Clears timers of a node: all, or those with these names. */
  disarm(nid: string, names?: readonly string[]): void {
    const { timers } = this.draft.node(nid) ?? {};
    if (timers === undefined) return;
    const gone = Object.keys(timers).filter((name) => names === undefined || names.includes(name));
    if (gone.length === 0) return;
    const left = Object.fromEntries(Object.entries(timers).filter(([name]) => !gone.includes(name)));
    this.draft.patch(nid, { timers: left });
    for (const name of gone) this.effects.push({ kind: 'clear_timer', name: `${nid}/${name}` });
  }

  /** A number from 0 to 1 that depends on the seed and on how many were drawn before. */
  random(): number {
    let hash = 2_166_136_261;
    for (const character of `${this.how.seed}/${this.#chance++}`)
      hash = Math.imul(hash ^ (character.codePointAt(0) ?? 0), 16_777_619);
    hash ^= hash >>> 15;
    hash = Math.imul(hash, 2_246_822_507);
    return ((hash ^ (hash >>> 13)) >>> 0) / 2 ** 32;
  }
}

/** Fuel for the signature of a link. */
const linkUnits = 50;

/** People, and receivers of callbacks, answer by a link. */
function isAnsweredByLink(work: TaskWork): boolean {
  return work.kind === 'human' || (work.kind === 'run' && work.callback !== null);
}

/** The error of a step that an exception stands for. Any other exception is a fault of ours, and is thrown on. */
export function failureOf(error: unknown, nid: string): FlowError {
  if (error instanceof ExpressionError)
    return { code: error.code, message: error.message, data: null, node: nid, isFinal: false };
  if (error instanceof StepFailure) {
    const { code, message, data, isFinal } = error;
    return { code, message, data, node: nid, isFinal };
  }
  throw error;
}

/** An error as handlers see it: `err`. */
export function errorFacts({ code, message, data, node }: FlowError): JsonObject {
  return { code, message, data, node };
}

export function asObject(value: Json, what: string): JsonObject {
  if (isObject(value)) return value;
  throw new StepFailure('expression_error', `${what} must be a mapping, not ${brief(value)}`);
}

/** Bounds what one step can add to the state of an execution. */
export function checkSize(value: Json): void {
  if (sizeOf(value, flowLimits.valueChars) > flowLimits.valueChars)
    throw new StepFailure('too_large', `a value has more than ${flowLimits.valueChars} characters as JSON`);
}
