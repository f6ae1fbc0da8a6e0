/** The entry of a commit: the message, the delta, and what left. `{"m": …, "d": …, "out": […]}`, the delta possibly sealed. */
import type { Secrets } from '../../contract/context.ts';
import type { Delta } from '../interpreter/delta.ts';
import type { Json, JsonObject } from '../json.ts';
import type { RunDetails } from './revisions/run-details.ts';
import { sealText, unsealObject } from './sealing.ts';

export interface Entry {
  readonly m: JsonObject;
  readonly d: Json;
  readonly out: readonly JsonObject[];
}

export function entryText({ message, delta, out }: RunDetails['entry'], secrets: Secrets | undefined): string {
  const d = secrets === undefined ? delta : sealText(secrets, delta);
  return `{"m":${message},"d":${d},"out":${out}}`;
}

export function deltaOf(secrets: Pick<Secrets, 'encrypt' | 'decrypt'>, { d }: Entry): Delta {
  return unsealObject(secrets, d);
}
