/**
 * Functions of a file (`--functions FILE`), each called in a process of its own (`runtimes/function/processes.ts`): a function that
 * never returns, never yields or fills the memory affects only its own call. What it prints goes to the log of the conductor.
 */
import type { Log } from '../../kernel/log.ts';
import type { Outcome } from '../../runtimes/contract.ts';
import { functionFile, type FunctionFileOptions } from '../../runtimes/function/processes.ts';
import { logOutput } from './log-output.ts';
import { type CallCircumstances, type CallOutcome, failedCall, type HostedFunctions, usualCode } from './hosted.ts';

export function functionsOfFile(options: FunctionFileOptions & { readonly log: Log }): HostedFunctions {
  const file = functionFile(options);
  return {
    get names() {
      return file.names();
    },
    async call(call, { tenant, stop: { signal } }: CallCircumstances) {
      const { key, attempt, execution, nid: node, flow, name, input } = call;
      const facts = { tenant, key, attempt, execution, node, flow };
      const output = logOutput(options.log, { tenant, flow, execution, node, function: name });
      const outcome = await file.call({ name, input }, { facts, output, signal });
      return outcomeOf(outcome, signal);
    },
    service: file.service,
  };
}

function outcomeOf({ state, reason, result, unkept, code }: Outcome, signal: AbortSignal): CallOutcome {
  if (state === 'success') {
    if (unkept !== undefined) return failedCall('bad_result', unkept);
    return { kind: 'done', result: result === undefined ? null : (JSON.parse(result) as unknown) };
  }
  if (signal.aborted) return { kind: 'cancelled' };
  return failedCall(code ?? usualCode, reason ?? '');
}
