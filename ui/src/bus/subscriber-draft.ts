/** The form of a subscriber's settings: text fields to a request, or the faults of the fields. */
import type { SubscriberDetail } from './use-bus.ts';

export interface SubscriberDraft {
  readonly topics: string;
  readonly callback: string;
  readonly max: string;
  readonly timeout: string;
  readonly rate: string;
  readonly maxAttempts: string;
  readonly filter: string;
}

type Faults = Partial<Record<keyof SubscriberDraft, string>>;

interface ChangeBody {
  readonly topics: string[];
  readonly callback?: string;
  readonly max: number;
  readonly timeout: number;
  readonly rate: number | null;
  readonly max_attempts: number | null;
  readonly filter: Record<string, unknown> | null;
}

export function draftOf(subscriber: SubscriberDetail): SubscriberDraft {
  return {
    topics: subscriber.topics.join(' '),
    callback: subscriber.callback ?? '',
    max: String(subscriber.max_events),
    timeout: String(subscriber.timeout),
    rate: subscriber.rate === null ? '' : String(subscriber.rate),
    maxAttempts: subscriber.max_attempts === null ? '' : String(subscriber.max_attempts),
    filter: subscriber.filter === null ? '' : JSON.stringify(subscriber.filter, null, 2),
  };
}

export function changeOf(
  draft: SubscriberDraft,
  { callback }: Pick<SubscriberDetail, 'callback'>,
): { readonly body: ChangeBody } | { readonly faults: Faults } {
  const [max, timeout] = [numberIn(draft.max), numberIn(draft.timeout)];
  const [rate, attempts] = [optionalNumberIn(draft.rate), optionalNumberIn(draft.maxAttempts)];
  const filter = filterIn(draft.filter);
  if (
    max === undefined ||
    timeout === undefined ||
    rate === undefined ||
    attempts === undefined ||
    filter === undefined
  ) {
    const noNumber = 'Enter a whole number.';
    return {
      faults: {
        ...(max === undefined ? { max: noNumber } : {}),
        ...(timeout === undefined ? { timeout: noNumber } : {}),
        ...(rate === undefined ? { rate: noNumber } : {}),
        ...(attempts === undefined ? { maxAttempts: noNumber } : {}),
        ...(filter === undefined ? { filter: 'Enter a JSON object.' } : {}),
      },
    };
  }
  return {
    body: {
      topics: draft.topics.split(/[\s,]+/).filter((name) => name !== ''),
      ...(callback === null ? {} : { callback: draft.callback.trim() }),
      max,
      timeout,
      rate,
      max_attempts: attempts,
      filter,
    },
  };
}

function numberIn(text: string): number | undefined {
  return /^\s*\d{1,9}\s*$/.test(text) ? Number(text) : undefined;
}

function optionalNumberIn(text: string): number | null | undefined {
  return text.trim() === '' ? null : numberIn(text);
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
