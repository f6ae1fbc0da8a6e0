/**
 * The runtime `function` for functions of the program that contains the worker (`createWorker`). They are called in its own
 * process.
 *
 * There a function cannot be killed. When its signal aborts, it has the grace to return; after that the run is abandoned, and
 * later results and output of the function are ignored. A function that never yields to the event loop blocks its whole process;
 * functions of a file have processes of their own (`processes.ts`).
 */
import { types } from 'node:util';
import {
  type CallFacts,
  failed,
  faulty,
  graceMs,
  mismatch,
  type NodeFacts,
  type Outcome,
  type Output,
  type RunFacts,
  type Runtime,
  type StreamName,
  success,
  type Task,
  type TaskFacts,
} from '../contract.ts';
import { resultOfValue } from '../task/result.ts';

/** The members of the context besides the facts of the run. */
interface CallContext {
  /** Aborts on timeout, cancellation, a lost lease and drain; its reason says which. */
  readonly signal: AbortSignal;
  /** Adds a line to the run's log. */
  readonly log: (line: string) => void;
}

/** The context of a function that a job's task names: the facts of its run, with the instant as a date. */
export interface FunctionContext extends Omit<TaskFacts, 'instant'>, CallContext {
  readonly instant: Date;
}

/** The context of a function that a node of a flow names. */
export interface NodeContext extends NodeFacts, CallContext {}

/**
 * A function that returns has succeeded, and the returned value is the result; a function that throws has failed. A function that
 * only tasks of jobs use, only nodes, or only conductors, may declare the narrower type of its context. (TypeScript allows that for methods.)
 */
export type TaskFunction = {
  call(input: unknown, context: FunctionContext | NodeContext | HostedContext): unknown;
}['call'];
export type TaskFunctions = Readonly<Record<string, TaskFunction>>;

export interface FunctionOptions {
  readonly functions: TaskFunctions;
  readonly graceMs?: number;
}

export function functionRuntime({ functions, graceMs: usualMs = 5_000 }: FunctionOptions): Runtime {
  return {
    name: 'function',
    serves: ['function'],
    outlives: false,
    async run(task, output, signal) {
      if (task.work.kind !== 'function') return mismatch('function', task.work);
      const called = Object.hasOwn(functions, task.work.name) ? functions[task.work.name] : undefined;
      if (called === undefined) return faulty(unknownFunction(task.work.name, functions));
      if (signal.aborted) return failed('it was stopped before it began');
      const gate = new Gate(output);
      const limit = makeLimit(signal, usualMs);
      try {
        return await Promise.race([limit.passed, call(called, task.work.input, task, gate, signal)]);
      } finally {
        limit.release();
        gate.close();
      }
    },
  };
}

export function unknownFunction(name: string, functions: TaskFunctions): string {
  const known = Object.keys(functions)
    .sort()
    .map((each) => `"${each}"`);
  return `there is no function "${name}" on this worker; it has ${known.length > 0 ? known.join(', ') : 'no functions'}`;
}

async function call(
  called: TaskFunction,
  input: unknown,
  task: Task,
  gate: Gate,
  signal: AbortSignal,
): Promise<Outcome> {
  try {
    const returned = await called(
      input,
      contextOf(task.facts, signal, (line) => gate.line('out', line)),
    );
    // its body would never run, because nothing would consume its values: that is not a success
    if (types.isGeneratorObject(returned))
      return faulty(`the function "${called.name}" is a generator; make it a plain one`);
    return { ...success, ...resultOfValue(returned) };
  } catch (error) {
    gate.line('err', stackOf(error));
    return failed(messageOf(error));
  }
}

/** Formats a thrown value for the log. */
export function stackOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? String(error)) : String(error);
}

/** Formats a thrown value as a reason. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message || error.name : String(error);
}

/** The `code` of a thrown error, if it has one. */
export function errorCodeOf(error: unknown): string | undefined {
  const code: unknown = typeof error === 'object' && error !== null ? Reflect.get(error, 'code') : undefined;
  return typeof code === 'string' && code !== '' ? code.slice(0, maxCodeLength) : undefined;
}

const maxCodeLength = 200;

/** The context of a function that a conductor hosts. Its signal aborts when the answer is not wanted any more. */
export interface HostedContext extends CallFacts, CallContext {}

export function contextOf(
  facts: RunFacts | CallFacts,
  signal: AbortSignal,
  log: CallContext['log'],
): FunctionContext | NodeContext | HostedContext {
  return facts.node === null ? { ...facts, instant: new Date(facts.instant), signal, log } : { ...facts, signal, log };
}

/** `passed` resolves after the grace once the signal has aborted; otherwise never. */
function makeLimit(signal: AbortSignal, usualMs: number): { passed: Promise<Outcome>; release(): void } {
  let timer: NodeJS.Timeout | undefined;
  let begin = (): void => {};
  const passed = new Promise<Outcome>((resolve) => {
    begin = () => {
      const ms = graceMs(signal, usualMs);
      const giveUp = (): void => resolve(failed(`the function did not return within ${ms} ms of being asked to stop`));
      timer = setTimeout(giveUp, ms);
    };
  });
  signal.addEventListener('abort', begin, { once: true });
  return {
    passed,
    release() {
      signal.removeEventListener('abort', begin);
      clearTimeout(timer);
    },
  };
}

/**
 * Passes lines on until the run is over. A function that logs without pause cannot be slowed down; the limit of the log limits
 * its output.
 */
class Gate {
  #output: Output | undefined;

  constructor(output: Output) {
    this.#output = output;
  }

  line(stream: StreamName, text: string): void {
    this.#output?.write(stream, Buffer.from(`${text}\n`))?.catch(() => {});
  }

  close(): void {
    this.#output = undefined;
  }
}
