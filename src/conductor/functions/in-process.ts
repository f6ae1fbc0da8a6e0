/**
 * Functions of the program that contains the conductor (`createConductor`), called in its process. A function cannot be killed
 * there: once its signal has aborted it has a grace to return, and after that its answer is not waited for.
 */
import { types } from 'node:util';
import type { HostedCall } from '../../contract/flows.ts';
import type { Log } from '../../kernel/log.ts';
import { errorCodeOf, type HostedContext, messageOf, stackOf } from '../../runtimes/function/function.ts';
import { resultOfValue } from '../../runtimes/task/result.ts';
import {
  type CallCircumstances,
  type CallOutcome,
  type CallStop,
  failedCall,
  type HostedFunctions,
  usualCode,
} from './hosted.ts';

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
      if (how.stop.isStopped) return { kind: 'cancelled' };
      return withGrace(how.stop, graceMs, perform(called, call, { ...how, log }));
    },
  };
}

async function perform(
  called: HostedFunction,
  { key, attempt, execution, nid: node, flow, name, input }: HostedCall,
  { tenant, stop, log }: CallCircumstances & { readonly log: Log },
): Promise<CallOutcome> {
  const write = (line: string): void => log.info({ tenant, flow, execution, node, function: name }, line);
  try {
    const facts = { key, attempt, execution, node, flow, tenant, log: write };
    const context: HostedContext = {
      ...facts,
      get signal() {
        return stop.signal;
      },
    };
    const returned = await called(input, context);
    if (types.isGeneratorObject(returned))
      return failedCall(usualCode, `the function "${name}" is a generator; make it a plain one`);
    return outcomeOf(returned);
  } catch (error) {
    if (stop.isStopped) return { kind: 'cancelled' };
    log.debug({ tenant, flow, execution, node, function: name, stack: stackOf(error) }, 'hosted function failed');
    return failedCall(errorCodeOf(error) ?? usualCode, messageOf(error));
  }
}

function outcomeOf(returned: unknown): CallOutcome {
  const { result, unkept } = resultOfValue(returned);
  if (unkept !== undefined) return failedCall('bad_result', unkept);
  return { kind: 'done', result: result === undefined ? null : (JSON.parse(result) as unknown) };
}

/** Once the call was asked to stop, its outcome is waited for only as long. */
function withGrace(stop: CallStop, graceMs: number, outcome: Promise<CallOutcome>): Promise<CallOutcome> {
  return new Promise((resolve) => {
    let grace: NodeJS.Timeout | undefined;
    stop.onStop = () => {
      grace = setTimeout(() => resolve({ kind: 'cancelled' }), graceMs);
    };
    void outcome.then((ended) => {
      stop.onStop = () => {};
      clearTimeout(grace);
      resolve(ended);
    });
  });
}
