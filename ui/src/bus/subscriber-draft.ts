/** The form of a subscriber's settings: text fields to a request, or the faults of the fields. */
import type { SubscriberDetail } from './use-bus.ts';

export interface SubscriberDraft {
  readonly topics: string;
  readonly callback: string;
  readonly max: string;
  readonly timeout: string;
  readonly rate: string;
  readonly strands: string;
  readonly maxAttempts: string;
  readonly maxAge: string;
  readonly requestTimeout: string;
  readonly filter: string;
}

type Faults = Partial<Record<keyof SubscriberDraft, string>>;

interface ChangeBody {
  readonly topics: string[];
  readonly callback?: string;
  readonly max: number;
  readonly timeout: number;
  readonly rate: number | null;
  readonly ordering: 'subscriber' | 'key';
  readonly strands: number;
  readonly max_attempts: number | null;
  readonly max_age: number | null;
  readonly request_timeout: number | null;
  readonly filter: Record<string, unknown> | null;
}

export function draftOf(subscriber: SubscriberDetail): SubscriberDraft {
  return {
    topics: subscriber.topics.join(' '),
    callback: subscriber.callback ?? '',
    max: String(subscriber.max_events),
    timeout: String(subscriber.timeout),
    rate: textOf(subscriber.rate),
    strands: String(subscriber.strands),
    maxAttempts: textOf(subscriber.max_attempts),
    maxAge: textOf(subscriber.max_age),
    requestTimeout: textOf(subscriber.request_timeout),
    filter: subscriber.filter === null ? '' : JSON.stringify(subscriber.filter, null, 2),
  };
}

const noNumber = 'Enter a whole number.';

export function changeOf(
  draft: SubscriberDraft,
  { callback }: Pick<SubscriberDetail, 'callback'>,
): { readonly body: ChangeBody } | { readonly faults: Faults } {
  const faults: { -readonly [K in keyof Faults]: Faults[K] } = {};
  const required = (name: keyof SubscriberDraft): number => {
    const value = numberIn(draft[name]);
    if (value === undefined) faults[name] = noNumber;
    return value ?? 0;
  };
  const optional = (name: keyof SubscriberDraft): number | null => (draft[name].trim() === '' ? null : required(name));
  const filter = filterIn(draft.filter);
  if (filter === undefined) faults.filter = 'Enter a JSON object.';
  const strands = required('strands');
  const body: ChangeBody = {
    topics: draft.topics.split(/[\s,]+/).filter((name) => name !== ''),
    ...(callback === null ? {} : { callback: draft.callback.trim() }),
    max: required('max'),
    timeout: required('timeout'),
    rate: optional('rate'),
    ordering: strands > 1 ? 'key' : 'subscriber',
    strands,
    max_attempts: optional('maxAttempts'),
    max_age: optional('maxAge'),
    request_timeout: optional('requestTimeout'),
    filter: filter ?? null,
  };
  return Object.keys(faults).length === 0 ? { body } : { faults };
}

function textOf(value: number | null): string {
  return value === null ? '' : String(value);
}

function numberIn(text: string): number | undefined {
  return /^\s*\d{1,11}\s*$/.test(text) ? Number(text) : undefined;
}

function filterIn(text: string): Record<string, unknown> | null | undefined {
  if (text.trim() === '') return null;
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
