/** Requests with a callback that still wait for their answer. */
import type { EngineContext } from '../../contract/context.ts';
import { onPool } from '../../kernel/sql.ts';
import { isAtWork } from '../executions/memory.ts';
import { readExecution } from '../executions/stored.ts';
import { type Attempt, isAnswered } from './answers.ts';

export interface Callback {
  /** The name of the flow. */
  readonly flow: string;
  /** The name of the task. */
  readonly name: string;
}

/** Undefined: this attempt waits for no answer by a link, or has one that a conductor has not taken yet. */
export async function findCallback(ctx: EngineContext, attempt: Attempt): Promise<Callback | undefined> {
  const stored = await readExecution(ctx, attempt.execution);
  const node = stored?.state.nodes[attempt.nid];
  if (stored === undefined || node === undefined || node.attempt !== attempt.attempt) return undefined;
  const step = stored.flow.byPosition.get(node.at);
  const isWaiting = node.phase === 'run' && isAtWork(node) && stored.state.ending === null;
  if (!isWaiting || step?.verb !== 'task' || step.work.kind !== 'run' || step.work.callback === null) return undefined;
  if (await isAnswered(onPool(ctx.pool), attempt)) return undefined;
  return { flow: stored.head.flow, name: step.name };
}
