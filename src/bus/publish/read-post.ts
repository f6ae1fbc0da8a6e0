/**
 * Reads a request to publish: who may publish, the topic, the events, the `Idempotency-Key`. Nothing is written before a request
 * is known to be valid. The `detail` of a refusal begins with the words of Routemaster.
 */
import { createHash } from 'node:crypto';
import type { Post, Refusal } from '../../contract/bus.ts';
import type { KeyCaller } from '../../contract/roles.ts';
import { type Fault, knownError } from '../../errors.ts';
import { countJsonValues } from '../../http/json-size.ts';
import { type EventDraft, isOwnTopic, isTopicName, readEvent } from './event-rules.ts';

/** The maximum number of events in one request. */
const maxEventsPerPost = 1_000;
const maxKeyLength = 255;
/** The maximum number of faults in an answer. */
const maxFaults = 50;

/** Roles that may publish. Root may do what any key may do. */
const publishingRoles: ReadonlySet<string> = new Set(['root', 'client', 'publisher']);

/** A request that follows the rules. */
export interface ValidPost {
  readonly topic: string;
  readonly owner: { readonly id: string; readonly name: string };
  readonly events: readonly EventDraft[];
  readonly isBulk: boolean;
  readonly key: { readonly text: string; readonly digest: Buffer } | undefined;
}

export function readPost(post: Post, maxDataBytes: number): ValidPost | Refusal {
  const owner = ownerOf(post);
  if (owner === undefined) return refuseCaller(post.caller);
  if (!isTopicName(post.topic))
    return badRequest('bad topic', [
      { path: 'topic', message: 'must have 1 to 64 lower-case letters and underscores' },
    ]);
  if (isOwnTopic(post.topic)) return refuseClaimed(post.topic);
  if (post.key !== null && (post.key === '' || post.key.length > maxKeyLength))
    return badRequest('bad request', [
      { path: 'Idempotency-Key', message: `must have 1 to ${maxKeyLength} characters` },
    ]);
  const parsed = parse(post.body);
  if ('faults' in parsed) return badRequest('bad event', parsed.faults);
  const { value } = parsed;
  const isBulk = Array.isArray(value);
  const faults: Fault[] = [];
  const events = isBulk ? readEvents(value, maxDataBytes, faults) : [readEvent(value, '', maxDataBytes, faults)];
  if (faults.length > 0) return badRequest('bad event', faults);
  const key = post.key === null ? undefined : { text: post.key, digest: digestOf(post.body) };
  return { topic: post.topic, owner, events, isBulk, key };
}

export function refuseClaimed(topic: string): Refusal {
  return { status: 403, code: 'forbidden', detail: `topic claimed: only the owner of ${topic} may publish to it` };
}

export function badRequest(words: string, faults: readonly Fault[]): Refusal {
  const some = faults.slice(0, maxFaults);
  const more = faults.length > maxFaults ? `; and ${faults.length - maxFaults} more` : '';
  const told = some.map(({ path, message }) => (path === '' ? message : `${path}: ${message}`)).join('; ');
  return { status: 400, code: 'bad_request', detail: `${words}: ${told}${more}`, faults: some };
}

function ownerOf({ caller }: Post): KeyCaller['identity'] {
  return caller.kind !== 'task' && publishingRoles.has(caller.role) ? caller.identity : undefined;
}

function refuseCaller(caller: Post['caller']): Refusal {
  const role = caller.kind === 'task' ? 'task' : caller.role;
  const who = caller.kind === 'session' ? 'a session' : `the role ${role}`;
  return {
    status: 403,
    code: 'forbidden',
    detail: `${who} may not publish; a key of the role client or publisher may`,
  };
}

type Parsed = { readonly value: unknown } | { readonly faults: readonly Fault[] };

const decoder = new TextDecoder('utf-8', { fatal: true });

function parse(body: Uint8Array): Parsed {
  if (body.length === 0) return { faults: [{ path: 'body', message: 'is empty: send an event as JSON' }] };
  try {
    countJsonValues(body);
    return { value: JSON.parse(decoder.decode(body)) };
  } catch (error) {
    const known = knownError(error);
    if (known !== undefined) return { faults: known.faults };
    const message = error instanceof SyntaxError ? `is not JSON: ${error.message}` : 'is not UTF-8 text';
    return { faults: [{ path: 'body', message }] };
  }
}

function readEvents(values: readonly unknown[], maxDataBytes: number, faults: Fault[]): EventDraft[] {
  if (values.length === 0) faults.push({ path: 'body', message: 'has no events' });
  if (values.length > maxEventsPerPost)
    faults.push({ path: 'body', message: `has ${values.length} events, at most ${maxEventsPerPost}` });
  if (faults.length > 0) return [];
  return values.map((value, i) => readEvent(value, `[${i}]`, maxDataBytes, faults));
}

function digestOf(body: Uint8Array): Buffer {
  return createHash('sha256').update(body).digest().subarray(0, 16);
}
