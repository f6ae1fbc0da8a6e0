/** Messages as the inbox holds them: `{"point", "bornMs", "actor", "body"}`, the body sealed if the sender's or the receiver's flow is. */
import type { Secrets } from '../../contract/context.ts';
import type { FlowMessage, LaunchBody } from '../../contract/flow-messages.ts';
import { type Json, isObject, type JsonObject } from '../json.ts';
import type { Child } from './revisions/run-details.ts';
import { sealText, unseal } from './sealing.ts';

type Stored = Pick<FlowMessage, 'point' | 'bornMs' | 'actor' | 'body'>;

export function messageText({ point, bornMs, actor, body }: Stored, secrets?: Secrets): string {
  if (secrets === undefined) return JSON.stringify({ point, bornMs, actor, body });
  const sealed = sealText(secrets, JSON.stringify(body));
  return `{"point":${JSON.stringify(point)},"bornMs":${bornMs},"actor":${JSON.stringify(actor)},"body":${sealed}}`;
}

export function childBody(
  { flow, input }: Child,
  { depth, atMs, secrets }: { readonly depth: number; readonly atMs: number; readonly secrets: Secrets | undefined },
): string {
  const body: LaunchBody = { point: 'launch', flow, input, depth };
  return messageText({ point: 'launch', bornMs: atMs, actor: null, body }, secrets);
}

export type InboxRow = { readonly id: string; readonly execution_id: string; readonly body: JsonObject };

export function toMessage(
  { id, execution_id: execution, body }: InboxRow,
  secrets: Pick<Secrets, 'encrypt' | 'decrypt'>,
): FlowMessage {
  const { point, bornMs, actor = null, body: inner = null } = body;
  return {
    id,
    execution,
    bornMs: Number(bornMs),
    point: point as FlowMessage['point'],
    actor: typeof actor === 'string' ? actor : null,
    body: unsealBody(inner, secrets),
  };
}

function unsealBody(body: Json, secrets: Pick<Secrets, 'encrypt' | 'decrypt'>): Json {
  return isObject(body) ? unseal(secrets, body) : body;
}
