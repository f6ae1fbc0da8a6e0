/**
 * Functions of the program that contains the conductor (`createConductor`), called in its process. A function cannot be killed
 * there: once its signal has aborted it has a grace to return, and after that its answer is not waited for.
 */
import { types } from 'node:util';
import type { HostedCall } from '../../contract/flows.ts';
import type { Log } from '../../kernel/log.ts';
import { errorCodeOf, type HostedContext, messageOf, stackOf } from '../../runtimes/function/function.ts';
import { resultOfValue } from '../../runtimes/task/result.ts';
import { type CallCircumstances, type CallOutcome, failedCall, type HostedFunctions, usualCode } from './hosted.ts';

/**
 * What it returns is the result of the task; undefined is null. What it throws is the error of the task: its `code`, or `error`, and
 * its message. It may declare the type of its input: `({ amount }: { amount: number }) => …`.
 */
export type HostedFunction = { call(input: unknown, context: HostedContext): unknown }['call'];
export type HostedFunctionMap = Readonly<Record<string, HostedFunction>>;

/** How long a function may take to return after it was asked to stop. */
const usualGraceMs = 30_000;

export function inProcessFunctions(
  functions: HostedFunctionMap,
  log: Log,
  graceMs: number = usualGraceMs,
): HostedFunctions {
  return {
    names: new Set(Object.keys(functions)),
    async call(call, how) {
      const called = Object.hasOwn(functions, call.name) ? functions[call.name] : undefined;
      if (called === undefined) return failedCall(usualCode, `there is no function "${call.name}" on this conductor`);
      if (how.signal.aborted) return { kind: 'cancelled' };
      const limit = makeLimit(how.signal, graceMs);
      try {
        return await Promise.race([limit.passed, perform(called, call, { ...how, log })]);
      } finally {
        limit.release();
      }
    },
  };
}

async function perform(
  called: HostedFunction,
  { key, attempt, execution, nid: node, flow, name, input }: HostedCall,
  { tenant, signal, log }: CallCircumstances & { readonly log: Log },
): Promise<CallOutcome> {
  const write = (line: string): void => log.info({ tenant, flow, execution, node, function: name }, line);
  try {
    const returned = await called(input, { key, attempt, execution, node, flow, tenant, signal, log: write });
    if (types.isGeneratorObject(returned))
      return failedCall(usualCode, `the function "${name}" is a generator; make it a plain one`);
    return outcomeOf(returned);
  } catch (error) {
    if (signal.aborted) return { kind: 'cancelled' };
    log.debug({ tenant, flow, execution, node, function: name, stack: stackOf(error) }, 'hosted function failed');
    return failedCall(errorCodeOf(error) ?? usualCode, messageOf(error));
  }
}

function outcomeOf(returned: unknown): CallOutcome {
  const { result, unkept } = resultOfValue(returned);
  if (unkept !== undefined) return failedCall('bad_result', unkept);
  return { kind: 'done', result: result === undefined ? null : (JSON.parse(result) as unknown) };
}

/** `passed` resolves after the grace once the signal has aborted; otherwise never. */
function makeLimit(signal: AbortSignal, graceMs: number): { passed: Promise<CallOutcome>; release(): void } {
  let timer: NodeJS.Timeout | undefined;
  let begin = (): void => {};
  const passed = new Promise<CallOutcome>((resolve) => {
    begin = () => {
      timer = setTimeout(() => resolve({ kind: 'cancelled' }), graceMs);
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
