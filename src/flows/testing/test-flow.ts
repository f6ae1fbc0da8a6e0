/**
 * Tests a flow without a server: the interpreter, a clock that only the test moves, and the test's own functions as tasks.
 *
 *     const t = await testFlow(document, { input: { amount: 5 }, tasks: { charge: async () => ({ id: 'p1' }) } });
 *     await t.skip('7d');
 *     expect(t.status).toBe('done');
 *
 * 1. Years pass in milliseconds: `skip` fires every timer on the way, in order, at its own time.
 * 2. `crash` rebuilds the execution from its commits, as a conductor does after a crash. Nothing may change by it.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { MillraceError } from '../../errors.ts';
import { parseDuration } from '../../kernel/text/duration.ts';
import { type Delta, foldDeltas } from '../interpreter/delta.ts';
import type { Effect } from '../interpreter/effects.ts';
import { interpret } from '../interpreter/interpret.ts';
import { blankState, type FlowError, type FlowState, type MessageBody, type Operation } from '../interpreter/state.ts';
import type { Json, JsonObject } from '../json.ts';
import { parseFlow } from '../language/parse-flow.ts';
import type { Flow } from '../language/step.ts';
import { checkAnswer } from '../workitems/form.ts';
import { entriesOf, type TimelineEntry } from './timeline.ts';

/**
 * A task's function. What it throws is the error of the task: its `code`, or `error`. It may declare the type of its input:
 * `({ amount }: { amount: number }) => …`.
 */
export type TestTask = {
  run(
    input: Json,
    context: {
      readonly attempt: number;
      readonly key: string;
      readonly nowMs: number;
      /** The link of a request with a callback. */
      readonly answerUrl: string | null;
    },
  ): Json | undefined | Promise<Json | undefined>;
}['run'];

export interface TestFlowOptions {
  readonly input?: Json;
  /**
   * By name. A task without a function waits until the test calls `answer` or `fail`. So does a request with a callback: its function
   * stands for the request, and what it returns is ignored.
   */
  readonly tasks?: Readonly<Record<string, TestTask>>;
  /** Other flows that `call` starts, by name. */
  readonly flows?: Readonly<Record<string, TestTask>>;
  /** When the execution is launched. Default: the beginning of 2026. */
  readonly now?: Date;
  /** Ends a long `skip`. */
  readonly signal?: AbortSignal;
}

export type FlowStatus = 'waiting' | 'paused' | 'incident' | 'done' | 'failed' | 'cancelled';

/** A task or a wait that the execution stands at. */
export interface OpenStep {
  readonly node: string;
  /** The place in the document: `steps[0]`. */
  readonly path: string;
  readonly phase: string;
  /** Of a task: its name. */
  readonly task: string | null;
  readonly error: FlowError | null;
}

type TaskEffect = Extract<Effect, { kind: 'task' }>;
type LaunchEffect = Extract<Effect, { kind: 'launch' }>;

/** Timers after which a skip lets other work of the process happen, such as Ctrl-C. */
const timersPerTurn = 100;

export class FlowTest {
  readonly #flow: Flow;
  readonly #options: TestFlowOptions;
  readonly #deltas: Delta[] = [];
  readonly #calls: { readonly task: string; readonly input: Json }[] = [];
  readonly #signals: { readonly to: string; readonly name: string; readonly payload: Json }[] = [];
  readonly #timeline: TimelineEntry[] = [];
  #state: FlowState = blankState;
  #open: TaskEffect[] = [];
  #nowMs: number;
  #messages = 0;

  constructor(flow: Flow, options: TestFlowOptions) {
    this.#flow = flow;
    this.#options = options;
    this.#nowMs = (options.now ?? new Date(Date.UTC(2026, 0, 1))).getTime();
  }

  get status(): FlowStatus {
    const { ending, isPaused, nodes } = this.#state;
    if (ending !== null) return ending.kind;
    if (isPaused) return 'paused';
    return Object.values(nodes).some(({ phase }) => phase === 'incident') ? 'incident' : 'waiting';
  }

  get fields(): JsonObject {
    return this.#state.f;
  }

  /** The result of the last step. */
  get result(): Json {
    return this.#state.ret;
  }

  /** Why the execution failed. */
  get error(): FlowError | null {
    const { ending } = this.#state;
    return ending?.kind === 'failed' ? ending.error : null;
  }

  get now(): Date {
    return new Date(this.#nowMs);
  }

  get state(): FlowState {
    return this.#state;
  }

  /** The tasks that were called, in order. */
  get calls(): readonly { readonly task: string; readonly input: Json }[] {
    return this.#calls;
  }

  /** Signals that were sent to other executions. */
  get signals(): readonly { readonly to: string; readonly name: string; readonly payload: Json }[] {
    return this.#signals;
  }

  /** What happened, in order, with the time of the test's clock. */
  get timeline(): readonly TimelineEntry[] {
    return this.#timeline;
  }

  /** The tasks, waits and incidents at which the execution stands. */
  get open(): readonly OpenStep[] {
    return Object.entries(this.#state.nodes).flatMap(([node, { at, phase, children, error = null }]) => {
      const step = this.#flow.byPosition.get(at);
      if (step === undefined || children.length > 0) return [];
      return [{ node, path: step.path, phase, task: step.verb === 'task' ? step.name : null, error }];
    });
  }

  /** Sends a signal, and does all that follows. */
  async signal(name: string, payload: Json = null): Promise<void> {
    await this.#send({ point: 'signal', name, payload });
  }

  /** Answers a task that has no function, such as a human task, whose form must fit. */
  async answer(task: string, result: Json = null): Promise<void> {
    const form = this.#open.find(({ name }) => name === task)?.work;
    const checked = checkAnswer(form?.kind === 'human' ? (form.item['form'] ?? {}) : {}, result);
    if (!checked.ok) {
      const list = checked.faults.map(({ path, message }) => `${path} ${message}`.trim());
      throw new MillraceError('bad_request', `The answer to ${task} is not valid: ${list.join('; ')}`, {
        faults: checked.faults,
      });
    }
    await this.#answer(task, { kind: 'done', result: checked.answer });
  }

  /** Lets a task fail that has no function. */
  async fail(task: string, code = 'error', message = ''): Promise<void> {
    await this.#answer(task, { kind: 'failed', code, message, data: null });
  }

  async #answer(task: string, outcome: Extract<MessageBody, { point: 'answer' }>['outcome']): Promise<void> {
    const call = this.#open.find(({ name }) => name === task);
    if (call === undefined) throw new MillraceError('not_found', `No task ${task} waits for an answer`);
    this.#open = this.#open.filter((other) => other !== call);
    await this.#send({ point: 'answer', nid: call.nid, attempt: call.attempt, outcome });
  }

  async cancel(): Promise<void> {
    await this.operate({ action: 'cancel', nid: null });
  }

  /** What a person may do to an execution: retry or skip an incident, pause, set fields. */
  async operate(operation: Operation): Promise<void> {
    await this.#send({ point: 'operate', operation });
  }

  /** Lets time pass: every timer on the way fires at its own time. */
  async skip(duration: string): Promise<void> {
    const parsed = parseDuration(duration);
    if (!parsed.ok) throw new MillraceError('bad_request', `skip: ${duration} ${parsed.message}`);
    const untilMs = this.#nowMs + parsed.ms;
    let fired = 0;
    for (let next = this.#nextTimer(untilMs); next !== undefined; next = this.#nextTimer(untilMs)) {
      this.#nowMs = Math.max(this.#nowMs, next.dueMs);
      await this.#send({ point: 'timer', name: next.name, generation: next.generation });
      if (++fired % timersPerTurn === 0) await nextTurn();
      this.#options.signal?.throwIfAborted();
    }
    this.#nowMs = untilMs;
  }

  #nextTimer(untilMs: number): { name: string; generation: number; dueMs: number } | undefined {
    if (this.#state.ending !== null || this.#state.isPaused) return undefined;
    const timers = Object.entries(this.#state.nodes).flatMap(([nid, node]) =>
      Object.entries(node.timers ?? {}).map(([name, timer]) => ({ ...timer, name: `${nid}/${name}` })),
    );
    const [first] = timers.filter(({ dueMs }) => dueMs <= untilMs).toSorted((a, b) => a.dueMs - b.dueMs);
    return first;
  }

  /** Forgets the execution and rebuilds it from its commits. */
  crash(): void {
    this.#state = foldDeltas(this.#deltas);
  }

  async launch(): Promise<void> {
    await this.#send({ point: 'launch', input: this.#options.input ?? {} });
  }

  /** Sends a message, and does all that follows at this moment. */
  async #send(body: MessageBody): Promise<void> {
    const queue: MessageBody[] = [body];
    for (let next = queue.shift(); next !== undefined; next = queue.shift())
      queue.push(...(await this.#work(this.#interpret(next))));
  }

  #interpret(body: MessageBody): { readonly effects: readonly Effect[]; readonly isMore: boolean } {
    this.#messages += 1;
    const result = interpret(this.#flow, this.#state, { id: `m${this.#messages}`, body }, this.#circumstances());
    if (result.refused?.code === 'internal') throw new Error(result.refused.detail);
    const change = { flow: this.#flow, body, before: this.#state, after: result.state, effects: result.effects };
    if (result.refused === null) this.#timeline.push(...entriesOf(change).map((entry) => ({ at: this.now, ...entry })));
    this.#state = result.state;
    this.#deltas.push(result.delta);
    return result;
  }

  #circumstances() {
    return {
      nowMs: this.#nowMs,
      seed: `test/${this.#messages}`,
      execution: { id: '00000000-0000-7000-8000-000000000000', key: null },
      depth: 0,
      maxMessages: 200,
      isSpent: () => false,
      link: (nid: string, attempt: number) => `https://millrace.test/answers/${nid}.${attempt}`,
      newId: (nid: string, attempt: number) => `execution of ${nid}.${attempt}`,
    };
  }

  async #work({ effects, isMore }: { effects: readonly Effect[]; isMore: boolean }): Promise<MessageBody[]> {
    const answers: MessageBody[] = isMore ? [{ point: 'continue' }] : [];
    for (const effect of effects) {
      if (effect.kind === 'task') answers.push(...(await this.#runTask(effect)));
      else if (effect.kind === 'launch') answers.push(...(await this.#runFlow(effect)));
      else if (effect.kind === 'stop') answers.push(...this.#stop(effect));
      else if (effect.kind === 'signal') this.#signals.push(effect);
    }
    return answers;
  }

  async #runTask(call: TaskEffect): Promise<MessageBody[]> {
    this.#calls.push({ task: call.name, input: call.input });
    const run = this.#options.tasks?.[call.name];
    if (run === undefined) {
      this.#open.push(call);
      return [];
    }
    const answer = await this.#perform(run, call, call.input);
    if (answerUrlOf(call) === null || answer.outcome.kind === 'failed') return [answer];
    this.#open.push(call);
    return [];
  }

  async #runFlow(call: LaunchEffect): Promise<MessageBody[]> {
    this.#calls.push({ task: call.flow, input: call.input });
    const run = this.#options.flows?.[call.flow];
    if (call.isDetached) {
      const outcome = { kind: 'done', result: call.id } as const;
      return [{ point: 'answer', nid: call.nid, attempt: call.attempt, outcome }];
    }
    if (run === undefined) throw new MillraceError('not_found', `The flow ${call.flow} is not among the test's flows`);
    return [await this.#perform(run, call, call.input)];
  }

  async #perform(
    run: TestTask,
    call: TaskEffect | LaunchEffect,
    input: Json,
  ): Promise<Extract<MessageBody, { point: 'answer' }>> {
    const { nid, attempt } = call;
    const answerUrl = call.kind === 'task' ? answerUrlOf(call) : null;
    try {
      const key = `${nid}/${attempt}`;
      const result = (await run(input, { attempt, key, nowMs: this.#nowMs, answerUrl })) ?? null;
      return { point: 'answer', nid, attempt, outcome: { kind: 'done', result } };
    } catch (error) {
      const code = codeOf(error);
      const message = error instanceof Error ? error.message : String(error);
      return { point: 'answer', nid, attempt, outcome: { kind: 'failed', code, message, data: null } };
    }
  }

  /** A task without a function stops at once. */
  #stop({ nid, attempt }: Extract<Effect, { kind: 'stop' }>): MessageBody[] {
    const isOpen = this.#open.some((call) => call.nid === nid && call.attempt === attempt);
    this.#open = this.#open.filter((call) => call.nid !== nid || call.attempt !== attempt);
    return isOpen ? [{ point: 'answer', nid, attempt, outcome: { kind: 'cancelled' } }] : [];
  }
}

function answerUrlOf({ work }: TaskEffect): string | null {
  const url = work.kind === 'run' ? work.block['answer_url'] : undefined;
  return typeof url === 'string' ? url : null;
}

function codeOf(error: unknown): string {
  const code = typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined;
  return typeof code === 'string' ? code : 'error';
}

/** Launches a flow, and does all that can be done without letting time pass. */
export async function testFlow(document: unknown, options: TestFlowOptions = {}): Promise<FlowTest> {
  const plain: unknown = JSON.parse(JSON.stringify(document));
  const parsed = parseFlow(plain);
  if (!parsed.ok) {
    const list = parsed.faults.map(({ path, message }) => `${path} ${message}`.trim());
    throw new MillraceError('bad_document', `The flow is not valid: ${list.join('; ')}`, {
      faults: [...parsed.faults],
    });
  }
  const test = new FlowTest(parsed.flow, options);
  await test.launch();
  return test;
}
