/**
 * Encrypts what is stored of executions of flows with sealed fields: deltas, snapshots, messages and the work of their tasks, each as a
 * whole. Which fields are sealed is a matter of display; in the database nothing of such an execution is readable.
 */
import type { Secrets } from '../../contract/context.ts';
import { isObject, type Json, type JsonObject } from '../json.ts';
import type { LoadedFlow } from './loaded-flow.ts';

type Sealing = Pick<Secrets, 'encrypt' | 'decrypt'>;

export function isSealed({ document: { sealed } }: Pick<LoadedFlow, 'document'>): boolean {
  return Array.isArray(sealed) && sealed.length > 0;
}

/** `{"sealed": "…"}`, as JSON. */
export function sealText(secrets: Sealing, json: string): string {
  return JSON.stringify({ sealed: sealed(secrets, json) });
}

/** A value as the text of `sealed`. */
export function sealValue(secrets: Sealing, value: Json): string {
  return sealed(secrets, JSON.stringify(value));
}

function sealed(secrets: Sealing, json: string): string {
  return secrets.encrypt(Buffer.from(json)).toString('base64');
}

/**
 * The value as it was before it was sealed, if it is sealed. Nothing that is stored here has a member `sealed` of its own: deltas,
 * states, bodies of messages and works of tasks have fixed members.
 */
export function unseal(secrets: Sealing, value: Json): Json {
  if (!isObject(value) || typeof value['sealed'] !== 'string') return value;
  return JSON.parse(secrets.decrypt(Buffer.from(value['sealed'], 'base64')).toString()) as Json;
}

export function unsealObject(secrets: Sealing, value: Json): JsonObject {
  const plain = unseal(secrets, value);
  return isObject(plain) ? plain : {};
}
