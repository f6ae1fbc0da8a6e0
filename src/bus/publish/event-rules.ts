/**
 * The rules for a published event. They are Routemaster's, as its code has them: `null` means absent, and unknown fields are
 * ignored. `id`, `key` and `target` are ours. Every fault names its field.
 */
import type { Fault } from '../../errors.ts';
import { findUnstorable } from '../../http/unstorable.ts';

const topicName = /^[a-z_]{1,64}$/;
/** Topics that Millrace itself publishes. */
const ownTopic = /^millrace_/;
const types: ReadonlySet<unknown> = new Set(['create', 'update', 'delete', 'noop']);
const limits = {
  urlLength: 2_048,
  /** The maximum length of `id`, `key` and `target`. */
  nameLength: 255,
  /** The latest time that a JavaScript date can have. */
  time: 8.64e15,
} as const;
/** Most URLs. Others are checked by the parser, which takes ten times as long. */
const plainUrl = /^https:\/\/[a-z0-9.-]+(?::\d{1,5})?(?:\/[\w.~!$&'()*+,;=:@%/-]*)?$/i;
const forbiddenInUrl = /[\s?\p{Cc}]/u;

/** An event that follows the rules. */
export interface EventDraft {
  readonly type: string;
  readonly url: string;
  readonly timestamp: number | undefined;
  /** As JSON. */
  readonly data: string | undefined;
  readonly id: string | undefined;
  readonly key: string | undefined;
  readonly target: string | undefined;
}

export function isTopicName(name: string): boolean {
  return topicName.test(name);
}

export function isOwnTopic(name: string): boolean {
  return ownTopic.test(name);
}

/** Reads an event. Adds its faults to `faults`, with paths below `path`; then the returned event is not valid. */
export function readEvent(value: unknown, path: string, maxDataBytes: number, faults: Fault[]): EventDraft {
  const fields = isObject(value) ? value : {};
  const fault = (field: string, message: string | undefined): void => {
    if (message !== undefined) faults.push({ path: [path, field].filter((part) => part !== '').join('.'), message });
  };
  if (!isObject(value)) fault('', 'must be an object with the fields type and url');
  else {
    if (!types.has(fields['type'])) fault('type', 'must be create, update, delete or noop');
    fault('url', findUrlFault(fields['url']));
  }
  const text = (field: string): string | undefined => {
    const given = fields[field];
    fault(field, findNameFault(given));
    return typeof given === 'string' ? given : undefined;
  };
  return {
    type: String(fields['type']),
    url: String(fields['url']),
    timestamp: readTime(fields['timestamp'], (message) => fault('timestamp', message)),
    data: readData(fields['data'], maxDataBytes, (message, inside) => fault(['data', ...inside].join('.'), message)),
    id: text('id'),
    key: text('key'),
    target: text('target'),
  };
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The fault of an event's URL; undefined: it is valid. */
function findUrlFault(url: unknown): string | undefined {
  if (typeof url !== 'string' || url === '') return 'is missing: an https URL';
  if (url.length > limits.urlLength) return `is too long: at most ${limits.urlLength} characters`;
  if (plainUrl.test(url)) return undefined;
  if (!/^https:\/\//i.test(url)) return 'must be an https URL';
  if (url.includes('?')) return 'must not have a query string';
  return forbiddenInUrl.test(url) || !url.isWellFormed() || !URL.canParse(url) ? 'is not a valid URL' : undefined;
}

/** `false` means absent, as in the original. A fraction of a millisecond is cut off. */
function readTime(value: unknown, fault: (message: string) => void): number | undefined {
  if (value === undefined || value === null || value === false) return undefined;
  if (typeof value === 'number' && value >= 0 && value <= limits.time) return Math.trunc(value);
  fault('must be the milliseconds since 1970, or null');
  return undefined;
}

function readData(
  value: unknown,
  maxBytes: number,
  fault: (message: string, inside: readonly string[]) => void,
): string | undefined {
  if (value === undefined || value === null) return undefined;
  if (!isObject(value)) {
    fault('must be an object', []);
    return undefined;
  }
  const unstorable = findUnstorable(value);
  if (unstorable !== undefined) fault(unstorable.message, unstorable.path);
  const text = JSON.stringify(value);
  const bytes = Buffer.byteLength(text);
  if (bytes > maxBytes) fault(`is too large: ${bytes} bytes of JSON, at most ${maxBytes}`, []);
  return text;
}

function findNameFault(value: unknown): string | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value !== 'string') return 'must be text';
  if (value === '' || value.length > limits.nameLength) return `must have 1 to ${limits.nameLength} characters`;
  if (/\p{Cc}/u.test(value) || !value.isWellFormed()) return 'must not have control characters';
  return undefined;
}
