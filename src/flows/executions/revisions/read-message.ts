/** Reads the bodies of messages, which may come from the inbox, from clients and from other releases. */
import type { FlowMessage, LaunchBody } from '../../../contract/flow-messages.ts';
import type { FlowState, MessageBody } from '../../interpreter/state.ts';
import { isObject, type JsonObject, memberOf } from '../../json.ts';

/** Undefined: the body is not that of such a message. */
export function readBody({ point, body }: FlowMessage): MessageBody | undefined {
  if (point === 'continue') return { point };
  if (!isObject(body)) return undefined;
  const fields = body;
  switch (point) {
    case 'launch':
      return readLaunch(fields);
    case 'answer':
      return readAnswer(fields);
    case 'timer':
      return { point, name: textOf(fields, 'name'), generation: Number(fields['generation']) };
    case 'signal':
      return { point, name: textOf(fields, 'name'), payload: fields['payload'] ?? null };
    case 'operate':
      return isObject(fields['operation'] ?? null) ? (fields as unknown as MessageBody) : undefined;
    default:
      return point satisfies never;
  }
}

function readLaunch(fields: JsonObject): MessageBody {
  const { input = null } = fields;
  const { fork } = fields as unknown as LaunchBody;
  if (fork === undefined) return { point: 'launch', input };
  return { point: 'launch', input, fork: { state: fork.state as FlowState, at: fork.at } };
}

function readAnswer(fields: JsonObject): MessageBody | undefined {
  const { outcome = null } = fields;
  if (!isObject(outcome)) return undefined;
  const answer = { point: 'answer', nid: textOf(fields, 'nid'), attempt: Number(fields['attempt']) } as const;
  const { kind } = outcome;
  if (kind === 'cancelled') return { ...answer, outcome: { kind } };
  if (kind === 'done') return { ...answer, outcome: { kind, result: outcome['result'] ?? null } };
  if (kind !== 'failed') return undefined;
  const { data = null } = outcome;
  return { ...answer, outcome: { kind, code: textOf(outcome, 'code'), message: textOf(outcome, 'message'), data } };
}

function textOf(fields: JsonObject, name: string): string {
  const value = memberOf(fields, name);
  return typeof value === 'string' ? value : '';
}

export function launchOf({ point, body }: FlowMessage): LaunchBody | undefined {
  if (point !== 'launch' || !isObject(body)) return undefined;
  const { flow, version, key } = body;
  if (typeof flow !== 'string') return undefined;
  if (version !== undefined && !Number.isSafeInteger(version)) return undefined;
  if (key !== undefined && typeof key !== 'string') return undefined;
  return body as unknown as LaunchBody;
}
