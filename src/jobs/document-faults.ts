/** Turns what zod says about a document into faults: a path, and a sentence that a person can act on. */
import type { z } from 'zod';
import type { Fault } from '../errors.ts';
import { objects } from './document.ts';
import { formatPath, isRecord, type PathPart, valueAt } from './path.ts';
import { didYouMean } from './suggest.ts';

type Issue = z.core.$ZodIssue;

/** Nobody reads more, and each costs a search for what was meant. */
export const mostFaults = 1_000;

export function faultsOf(document: unknown, issues: readonly Issue[], prefix: readonly PathPart[] = []): Fault[] {
  return issues.slice(0, mostFaults).flatMap((issue) => {
    const path = [...prefix, ...issue.path.map((part) => (typeof part === 'number' ? part : String(part)))];
    if (issue.code === 'unrecognized_keys') {
      return issue.keys.slice(0, mostFaults).map((key) => unknownField(path, key));
    }
    if (issue.code === 'invalid_union') return unionFaults(document, issue, path);
    if (issue.code === 'invalid_key') return faultsOf(document, issue.issues, path);
    const value = valueAt(document, path);
    const zone = path.at(-1) === 'timezone' && typeof value === 'string' ? zoneHint(value) : '';
    return [{ path: formatPath(path), message: `${sentence(issue, value)}${zone}` }];
  });
}

/** The faults of the one alternative whose type fits, if there is one; else what the union as a whole wants. */
function unionFaults(document: unknown, issue: z.core.$ZodIssueInvalidUnion, path: readonly PathPart[]): Fault[] {
  const fitting = issue.errors.filter(
    (alternative) => !alternative.some(({ code, path: at }) => code === 'invalid_type' && at.length === 0),
  );
  const [only] = fitting;
  if (only !== undefined && fitting.length === 1) return faultsOf(document, only, path);
  return [{ path: formatPath(path), message: issue.message }];
}

/** Fields that people know from elsewhere, and where they are here. */
const moved = new Map([
  ['image', 'docker.image'],
  ['args', 'docker.args'],
  ['env', 'docker.env or process.env'],
  ['command', 'process.command'],
  ['max_attempts', 'retry.max_attempts'],
  ['tz', 'timezone'],
  ['schedule', 'cron'],
  ['depends_on', 'depends'],
]);

function unknownField(path: readonly PathPart[], key: string): Fault {
  const object = objects.get(path.filter((part) => typeof part === 'string').join('.'));
  const hint = object === undefined ? '' : didYouMean(key, object.fields) || movedHint(key);
  return {
    path: formatPath([...path, key]),
    message: object === undefined ? 'is not a field here' : `is not a field of ${object.label}${hint}`,
  };
}

function movedHint(key: string): string {
  const place = moved.get(key);
  return place === undefined ? '' : `; did you mean ${place}?`;
}

function zoneHint(value: string): string {
  return didYouMean(value, Intl.supportedValuesOf('timeZone'));
}

const types = new Map([
  ['string', 'text'],
  ['int', 'a whole number'],
  ['number', 'a number'],
  ['boolean', 'true or false'],
  ['array', 'a list'],
  ['object', 'a mapping'],
  ['record', 'a mapping'],
]);

function sentence(issue: Issue, value: unknown): string {
  if (issue.code === 'invalid_type') return typeSentence(issue.expected, value);
  if (issue.code === 'too_big') return `must be at most ${issue.maximum}`;
  if (issue.code === 'too_small')
    return issue.origin === 'array' ? 'must not be empty' : `must be at least ${issue.minimum}`;
  if (issue.code !== 'invalid_value') return issue.message;
  const values = issue.values.map(String);
  return `must be one of ${values.join(', ')}${typeof value === 'string' ? didYouMean(value, values) : ''}`;
}

function typeSentence(expected: string, value: unknown): string {
  const wanted = types.get(expected) ?? expected;
  if (value === undefined) return 'is required';
  if (expected === 'string' && (typeof value === 'number' || typeof value === 'boolean')) {
    return `must be text; put ${String(value)} in quotes`;
  }
  if (value === null) return `must be ${wanted}, not empty`;
  return `must be ${wanted}, not ${kindOf(value)}`;
}

function kindOf(value: unknown): string {
  if (Array.isArray(value)) return 'a list';
  if (isRecord(value)) return 'a mapping';
  return types.get(typeof value) ?? 'this';
}
