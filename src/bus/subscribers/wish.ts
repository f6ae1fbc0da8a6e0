/**
 * Merges what a caller asks for with the present subscriber. Pure: all faults are found before anything is written. A field that
 * is missing keeps its value, and null means the default.
 */
import { MillraceError } from '../../errors.ts';
import { callbackFault } from './callback.ts';
import type { SubscriberKind, SubscriberSettings } from './queries.ts';
import { defaultTerms, type Terms } from './revisions.ts';

/** The fields of requests, in Routemaster's words and units. */
export interface Wish {
  readonly topics?: readonly string[] | undefined;
  readonly callback?: string | undefined;
  readonly uuid?: string | null | undefined;
  readonly timeout?: number | null | undefined;
  readonly max?: number | null | undefined;
  readonly filter?: Readonly<Record<string, unknown>> | null | undefined;
  readonly max_bytes?: number | null | undefined;
  readonly quiet?: boolean | null | undefined;
  readonly ordering?: 'subscriber' | 'key' | null | undefined;
  readonly strands?: number | null | undefined;
  readonly rate?: number | null | undefined;
  readonly max_attempts?: number | null | undefined;
  readonly max_age?: number | null | undefined;
  readonly request_timeout?: number | null | undefined;
  readonly kind?: SubscriberKind | undefined;
}

/** Routemaster's words for everything that is wrong besides the list of topics. */
function reject(path: string, message: string): MillraceError {
  const faults = [{ path: `body.${path}`, message }];
  return new MillraceError('bad_request', `bad data in payload: body.${path}: ${message}`, { faults });
}

const orKept = <T>(wished: T | undefined, kept: T): T => (wished === undefined ? kept : wished);
const orDefault = <T>(wished: T | null | undefined, kept: T, standard: T): T =>
  wished === undefined ? kept : (wished ?? standard);

export function mergeTerms(present: Terms, wish: Wish, topics: readonly number[] | undefined): Terms {
  return {
    topics: topics ?? present.topics,
    filter: orKept(wish.filter, present.filter),
    max_events: orDefault(wish.max, present.max_events, defaultTerms.max_events),
    max_bytes: orDefault(wish.max_bytes, present.max_bytes, defaultTerms.max_bytes),
    window_ms: orDefault(wish.timeout, present.window_ms, defaultTerms.window_ms),
    quiet: orDefault(wish.quiet, present.quiet, defaultTerms.quiet),
    ...mergeOrder(present, wish),
  };
}

/** Several strands keep only the order of events with the same key. One wish of the two decides the other. */
function mergeOrder(present: Terms, wish: Wish): Pick<Terms, 'ordering' | 'strands'> {
  const ordering = wish.ordering === null ? defaultTerms.ordering : wish.ordering;
  const strands = wish.strands === null ? defaultTerms.strands : wish.strands;
  if (ordering === 'subscriber' && strands !== undefined && strands > 1) {
    throw reject(
      'strands',
      'several strands need `ordering: key`: they keep only the order of events with the same key',
    );
  }
  if (ordering === 'subscriber') return { ordering, strands: 1 };
  if (strands !== undefined) return { ordering: strands > 1 ? 'key' : (ordering ?? present.ordering), strands };
  return { ordering: ordering ?? present.ordering, strands: present.strands };
}

export function mergeSettings(
  present: SubscriberSettings,
  wish: Wish,
  tools: { allowHttp: boolean; encrypt: (plain: Buffer) => Buffer },
): SubscriberSettings {
  const kind = wish.kind ?? (wish.callback === undefined ? present.kind : 'http');
  return {
    kind,
    callback: mergeCallback(kind, present.callback, wish.callback, tools.allowHttp),
    credential: mergeCredential(present.credential, wish.uuid, tools.encrypt),
    rate: orKept(wish.rate, present.rate),
    max_attempts: orKept(wish.max_attempts, present.max_attempts),
    max_age_ms: orKept(wish.max_age, present.max_age_ms),
    request_ms: orKept(wish.request_timeout, present.request_ms),
  };
}

function mergeCallback(
  kind: SubscriberKind,
  present: string | null,
  wished: string | undefined,
  allowHttp: boolean,
): string | null {
  if (kind === 'pull') {
    if (wished !== undefined) throw reject('callback', 'a subscriber of kind `pull` has none');
    return null;
  }
  if (wished === undefined) {
    if (present === null) throw reject('callback', 'URL is missing');
    return present;
  }
  const fault = callbackFault(wished, allowHttp);
  if (fault !== undefined) throw reject('callback', fault);
  return wished;
}

/** An empty user name is none, as in Routemaster. */
function mergeCredential(
  present: Buffer | null,
  wished: string | null | undefined,
  encrypt: (plain: Buffer) => Buffer,
): Buffer | null {
  if (wished === undefined) return present;
  return wished === null || wished === '' ? null : encrypt(Buffer.from(wished));
}
