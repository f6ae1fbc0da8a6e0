/** Drives one execution by hand: a clock, tasks that wait for their answers, and a record of all that has happened. */
import { parseFlow } from '../../../src/flows/language/parse-flow.ts';
import type { Flow } from '../../../src/flows/language/step.ts';
import { type Delta, foldDeltas } from '../../../src/flows/interpreter/delta.ts';
import type { Effect } from '../../../src/flows/interpreter/effects.ts';
import { type FlowMessage, interpret, type Interpreted } from '../../../src/flows/interpreter/interpret.ts';
import type { Deed } from './random-flows.ts';
import { blankState, type FlowState, type MessageBody } from '../../../src/flows/interpreter/state.ts';

type TaskEffect = Extract<Effect, { kind: 'task' }>;

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
  #sent = 0;

  constructor(document: unknown, how: { readonly isDoubling?: boolean; readonly maxMessages?: number } = {}) {
    const parsed = parseFlow(document);
    if (!parsed.ok) throw new Error(JSON.stringify(parsed.faults));
    this.flow = parsed.flow;
    this.isDoubling = how.isDoubling === true;
    this.maxMessages = how.maxMessages ?? 200;
  }

  send(body: MessageBody): Interpreted {
    const message = { id: `m${++this.#sent}`, body };
    const first = this.#take(message);
    if (this.isDoubling) this.#take(message);
    return first;
  }

  #take(message: FlowMessage): Interpreted {
    let result = this.#interpret(message);
    const first = result;
    while (result.isMore) result = this.#interpret({ id: `${message.id}+`, body: { point: 'continue' } });
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
    if (effect.kind === 'task') {
      this.tasks.push(effect);
      this.open.push(effect);
    }
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
    this.open = this.open.filter((other) => other !== call);
    const { nid, attempt } = call;
    const outcome = isFailure
      ? ({ kind: 'failed', code: 'error', message: 'no', data: null } as const)
      : ({ kind: 'done', result: { task: call.name } } as const);
    this.send({ point: 'answer', nid, attempt, outcome });
    return true;
  }

  do({ kind, pick }: Deed): void {
    if (kind === 'answer') this.answer(pick);
    else if (kind === 'fail') this.answer(pick, true);
    else if (kind === 'time') this.fireNext();
    else this.send({ point: 'signal', name: 'go', payload: pick });
  }

  /** Answers and waits until nothing is left to do. Returns whether the execution has ended. */
  drain(most = 2_000): boolean {
    for (let i = 0; i < most && !this.isOver; i++) if (!this.answer(0) && !this.fireNext()) return false;
    return this.isOver;
  }
}
