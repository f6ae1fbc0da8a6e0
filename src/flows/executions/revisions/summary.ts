/** What the history says about a message. Its values are in the delta, because they may be sealed. */
import type { FlowMessage } from '../../../contract/flow-messages.ts';
import type { MessageBody } from '../../interpreter/state.ts';
import type { Json, JsonObject } from '../../json.ts';
import type { Memory } from '../memory.ts';
import { launchOf } from './read-message.ts';

export function summaryOf(message: FlowMessage, body: MessageBody, { state }: Memory): JsonObject {
  const base = { id: message.id, point: body.point, born: message.bornMs };
  switch (body.point) {
    case 'answer':
      return { ...base, nid: body.nid, attempt: body.attempt, outcome: body.outcome.kind };
    case 'timer': {
      const slash = body.name.lastIndexOf('/');
      const nid = body.name.slice(0, slash);
      const timer = state.nodes[nid]?.timers?.[body.name.slice(slash + 1)];
      return { ...base, nid, timer: body.name, planned: timer?.plannedMs ?? timer?.dueMs ?? null };
    }
    case 'signal':
      return { ...base, name: body.name };
    case 'operate': {
      const { operation } = body;
      const nid: Json = 'nid' in operation ? operation.nid : null;
      return { ...base, action: operation.action, ...(nid !== null && { nid }) };
    }
    case 'launch': {
      const fork = launchOf(message)?.fork;
      return fork === undefined ? base : { ...base, forked: { execution: fork.execution, rev: fork.rev } };
    }
    case 'continue':
      return base;
    default:
      return body satisfies never;
  }
}
