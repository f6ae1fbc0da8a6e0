/**
 * Encrypts what is stored of executions of flows with sealed fields: deltas, snapshots, messages and the work of their tasks, each as a
 * whole. Which fields are sealed is a matter of display; in the database nothing of such an execution is readable.
 */
import type { Secrets } from '../../contract/context.ts';
import { isObject, type Json, type JsonObject } from '../json.ts';
import type { LoadedFlow } from './loaded-flow.ts';

type Sealing = Pick<Secrets, 'encrypt' | 'decrypt'>;

export function isSealed({ parsed }: LoadedFlow): boolean {
  return parsed.ok && parsed.flow.sealed.length > 0;
}

/** `{"sealed": "…"}`, as JSON. */
export function sealText(secrets: Sealing, json: string): string {
  return JSON.stringify({ sealed: secrets.encrypt(Buffer.from(json)).toString('base64') });
}

/** The value as it was before it was sealed, if it is sealed. */
export function unseal(secrets: Sealing, value: Json): Json {
  if (!isObject(value) || typeof value['sealed'] !== 'string' || Object.keys(value).length !== 1) return value;
  return JSON.parse(secrets.decrypt(Buffer.from(value['sealed'], 'base64')).toString()) as Json;
}

export function unsealObject(secrets: Sealing, value: Json): JsonObject {
  const plain = unseal(secrets, value);
  return isObject(plain) ? plain : {};
}
