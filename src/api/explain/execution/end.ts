/** Explains how an execution has ended. */
import type { StoredExecution } from '../../../flows/executions/stored.ts';
import type { ApiContext } from '../../context.ts';
import { type Finding, finding, formatTime } from '../findings.ts';
import { findLastEvent } from './queries.ts';

export async function explainEnd(ctx: ApiContext, { head, state, flow }: StoredExecution): Promise<Finding[]> {
  const at = head.endedAt === null ? '' : ` at ${formatTime(head.endedAt)}`;
  const data = { at: head.endedAt };
  const { ending } = state;
  if (ending?.kind === 'failed') {
    const { code, message, node } = ending.error;
    const step = flow.byPosition.get(node.slice(0, node.lastIndexOf('-')));
    const where = step === undefined ? '' : ` in ${step.path}`;
    const words = message === '' ? code : `${code}: ${message.slice(0, 300)}`;
    const next = `again from an earlier revision: millrace flow fork ${head.id} --rev REV`;
    return [finding('execution_failed', `it failed${at}${where}: ${words}`, { ...data, code, node }, next)];
  }
  if (ending?.kind === 'cancelled') {
    const act = await findLastEvent(ctx.db, head.id, 'execution.cancelled');
    const by = act?.actor == null ? '' : ` by ${act.actor}`;
    return [finding('execution_cancelled', `it was cancelled${at}${by}`, { ...data, actor: act?.actor ?? null })];
  }
  return [finding('execution_done', `it ended${at}`, data)];
}
