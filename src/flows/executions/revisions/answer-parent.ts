/** The end of an execution, as the answer to the node that has called it. */
import type { JsonObject } from '../../json.ts';
import { answerId } from './effects-of-run.ts';
import type { Memory } from '../memory.ts';
import type { Sent } from './run-details.ts';

export function answerParent({ parent, state: { ending, ret } }: Memory): Sent[] {
  if (parent === null || ending === null) return [];
  const { execution, nid, attempt } = parent;
  const outcome = ((): JsonObject => {
    if (ending.kind === 'done') return { kind: 'done', result: ret };
    if (ending.kind === 'cancelled') return { kind: 'cancelled' };
    const { code, message, data } = ending.error;
    return { kind: 'failed', code, message, data };
  })();
  return [
    { execution, id: answerId({ nid, attempt }), point: 'answer', body: { point: 'answer', nid, attempt, outcome } },
  ];
}
