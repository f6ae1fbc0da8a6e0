/** Explains a run that performs a step of an execution: which step, and where the execution comes from. */
import { readHeads } from '../../../flows/executions/heads.ts';
import type { ApiContext } from '../../context.ts';
import { type Finding, finding, type Link } from '../findings.ts';
import { traceExecution } from './chain.ts';
import { findStepOfRun } from './queries.ts';

export interface StepOfRun {
  /** The flow and the task. */
  readonly name: string;
  readonly finding: Finding;
  readonly chain: readonly Link[];
}

/** Undefined: it performs none. */
export async function explainStepOfRun(ctx: ApiContext, run: string): Promise<StepOfRun | undefined> {
  const step = await findStepOfRun(ctx.db, run);
  if (step === undefined) return undefined;
  const { execution, nid: node, attempt, name, flow } = step;
  const which = attempt > 1 ? `attempt ${attempt} of the step ${name}` : `the step ${name}`;
  const message = `it performs ${which} (${node}) of the execution ${execution} of ${flow}`;
  const found = finding('performs_step', message, { execution, node, attempt }, `millrace why execution/${execution}`);
  const [head] = await readHeads(ctx.db, [execution]);
  const chain = head === undefined ? [] : (await traceExecution(ctx, head)).chain;
  return { name: `${flow} ${name}`, finding: found, chain };
}
