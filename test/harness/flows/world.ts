/** Drives one execution by hand: a clock, tasks that wait for their answers, and a record of all that has happened. */
import { parseFlow } from '../../../src/flows/language/parse-flow.ts';
import type { Flow } from '../../../src/flows/language/step.ts';
import { type Delta, foldDeltas } from '../../../src/flows/interpreter/delta.ts';
import type { Effect } from '../../../src/flows/interpreter/effects.ts';
import { type FlowMessage, interpret, type Interpreted } from '../../../src/flows/interpreter/interpret.ts';
import type { Json } from '../../../src/flows/json.ts';
import type { Deed } from './random-flows.ts';
import { blankState, type FlowState, type MessageBody, type Operation } from '../../../src/flows/interpreter/state.ts';

type TaskEffect = Pick<Extract<Effect, { kind: 'task' }>, 'nid' | 'attempt' | 'name' | 'input'>;

export class FlowWorld {
  readonly flow: Flow;
  readonly deltas: Delta[] = [];
  readonly tasks: TaskEffect[] = [];
  state: FlowState = blankState;
  open: TaskEffect[] = [];
  nowMs = Date.UTC(2026, 0, 1);
  /** Each message is sent twice. */
  readonly isDoubling: boolean;
  /** Inner messages in one run. */
  readonly maxMessages: number;
  /** What a run leaves waits until the test sends `continue`. */
  readonly isStepwise: boolean;
  #sent = 0;
  readonly #past: FlowMessage[] = [];

  constructor(
    document: unknown,
    how: { readonly isDoubling?: boolean; readonly maxMessages?: number; readonly isStepwise?: boolean } = {},
  ) {
    const parsed = parseFlow(document);
    if (!parsed.ok) throw new Error(JSON.stringify(parsed.faults));
    this.flow = parsed.flow;
    this.isDoubling = how.isDoubling === true;
    this.maxMessages = how.maxMessages ?? 200;
    this.isStepwise = how.isStepwise === true;
  }

  send(body: MessageBody): Interpreted {
    const message = { id: `m${++this.#sent}`, body };
    const first = this.#take(message);
    if (this.isDoubling) this.#repeat(message);
    return first;
  }

  /** The message comes again, and so does an answer or a timer from long ago. A paused execution only keeps what comes. */
  #repeat(message: FlowMessage): void {
    if (message.body.point === 'answer' || message.body.point === 'timer') this.#past.push(message);
    this.#take(message);
    const old = this.#past[(this.#sent * 31) % Math.max(1, this.#past.length)];
    if (old !== undefined && !this.state.isPaused) this.#take(old);
  }

  #take(message: FlowMessage): Interpreted {
    let result = this.#interpret(message);
    const first = result;
    while (result.isMore && !this.isStepwise)
      result = this.#interpret({ id: `${message.id}+`, body: { point: 'continue' } });
    return first;
  }

  #interpret(message: FlowMessage): Interpreted {
    const result = interpret(this.flow, this.state, message, {
      nowMs: this.nowMs,
      seed: message.id,
      execution: { id: 'e', key: null },
      maxMessages: this.maxMessages,
      isSpent: () => false,
      link: (nid, attempt) => `${nid}.${attempt}`,
      depth: 0,
      newId: (nid, attempt) => `${nid}.${attempt}`,
    });
    this.state = result.state;
    this.deltas.push(result.delta);
    for (const effect of result.effects) this.#note(effect);
    return result;
  }

  #note(effect: Effect): void {
    if (effect.kind !== 'task' && effect.kind !== 'launch') return;
    const task = effect.kind === 'task' ? effect : { ...effect, name: effect.flow };
    this.tasks.push(task);
    this.open.push(task);
  }

  get folded(): FlowState {
    return foldDeltas(this.deltas);
  }

  get isOver(): boolean {
    return this.state.ending !== null;
  }

  get timers(): readonly { readonly name: string; readonly generation: number; readonly dueMs: number }[] {
    return Object.entries(this.state.nodes)
      .flatMap(([nid, { timers = {} }]) =>
        Object.entries(timers).map(([name, timer]) => ({ ...timer, name: `${nid}/${name}` })),
      )
      .toSorted((a, b) => a.dueMs - b.dueMs);
  }

  fireNext(): boolean {
    const [next] = this.timers;
    if (next === undefined) return false;
    this.nowMs = Math.max(this.nowMs, next.dueMs);
    this.send({ point: 'timer', name: next.name, generation: next.generation });
    return true;
  }

  answer(pick: number, isFailure = false): boolean {
    const call = this.open[pick % Math.max(1, this.open.length)];
    if (call === undefined) return false;
    this.#answer(call, isFailure, { task: call.name });
    return true;
  }

  /** Answers the oldest open task of this name. */
  answerTo(name: string, isFailure = false, result: Json = { task: name }): void {
    const call = this.open.find((open) => open.name === name);
    if (call === undefined) throw new Error(`no task ${name} is open`);
    this.#answer(call, isFailure, result);
  }

  #answer(call: TaskEffect, isFailure: boolean, result: Json): void {
    this.open = this.open.filter((other) => other !== call);
    const { nid, attempt } = call;
    const outcome = isFailure
      ? ({ kind: 'failed', code: 'error', message: 'no', data: null } as const)
      : ({ kind: 'done', result } as const);
    this.send({ point: 'answer', nid, attempt, outcome });
  }

  do({ kind, pick }: Deed): void {
    if (kind === 'answer') this.answer(pick);
    else if (kind === 'fail') this.answer(pick, true);
    else if (kind === 'time') this.fireNext();
    else if (kind === 'signal') this.send({ point: 'signal', name: 'go', payload: pick });
    else if (kind === 'pause') this.operate({ action: this.state.isPaused ? 'resume' : 'pause' });
    else this.#operateOnNode(kind, pick);
  }

  operate(operation: Operation): Interpreted {
    return this.send({ point: 'operate', operation });
  }

  #operateOnNode(action: 'retry' | 'skip' | 'cancel' | 'kill', pick: number): void {
    // the root would end it all
    const nids = Object.entries(this.state.nodes).flatMap(([nid, { parent }]) => (parent === null ? [] : [nid]));
    const nid = nids[pick % Math.max(1, nids.length)];
    if (nid !== undefined) this.operate(action === 'skip' ? { action, nid, result: pick } : { action, nid });
  }

  /** Answers and waits until nothing is left to do. Returns whether the execution has ended. */
  drain(most = 2_000): boolean {
    if (this.state.isPaused) this.operate({ action: 'resume' });
    for (let i = 0; i < most && !this.isOver; i++) if (!this.answer(0) && !this.fireNext()) return false;
    return this.isOver;
  }
}
