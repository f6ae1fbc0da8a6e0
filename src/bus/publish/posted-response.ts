/** The HTTP answer to a request to publish. */
import type { Posted, Refusal } from '../../contract/bus.ts';
import { problemOf } from '../../errors.ts';

export interface PostedResponse {
  readonly status: number;
  readonly headers: Record<string, string>;
  readonly text: string;
}

const json = { 'content-type': 'application/json' };
const repeatedJson = { ...json, 'idempotent-replayed': 'true' };

export function postedResponse(posted: Posted): PostedResponse {
  if ('refused' in posted) return refusedResponse(posted.refused);
  const { first, last, isBulk, isRepeated } = posted;
  const text = isBulk ? `{"first":"${first}","last":"${last}"}` : `{"id":"${first}"}`;
  return { status: 200, headers: isRepeated ? repeatedJson : json, text };
}

function refusedResponse(refusal: Refusal): PostedResponse {
  const headers: Record<string, string> = { 'content-type': 'application/problem+json' };
  if (refusal.status === 503 || refusal.status === 429) headers['retry-after'] = '1';
  return { status: refusal.status, headers, text: JSON.stringify(problemOf(refusal)) };
}
