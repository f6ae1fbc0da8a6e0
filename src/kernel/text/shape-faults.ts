/** Converts the issues of a zod schema to faults: a path, and a sentence that the user can act on. */
import { z } from 'zod';
import type { Fault } from '../../errors.ts';
import { formatPath, isRecord, type PathPart } from './path.ts';
import { didYouMean } from './suggest.ts';

type Issue = z.core.$ZodIssue;
type RawIssue = z.core.$ZodRawIssue;

/** Replaces zod's messages, for `safeParse`. Messages of a schema itself take precedence. */
export const faultWords: { readonly error: z.core.$ZodErrorMap } = { error: sentence };

/** Unknown fields of one object that are reported. A body may have 10,000, and each costs a search for a suggestion. */
const maxUnknownFields = 50;

/** The faults of a value that was parsed with `faultWords`. `of` lists the known fields at its top level, for suggestions. */
export function shapeFaults(
  issues: readonly Issue[],
  at: readonly PathPart[] = [],
  of: Iterable<string> = [],
): Fault[] {
  return issues.flatMap((issue) => {
    const path = [...at, ...pathOf(issue)];
    if (issue.code === 'unrecognized_keys') {
      const known = issue.path.length === 0 ? of : [];
      return issue.keys.slice(0, maxUnknownFields).map((key) => ({
        path: formatPath([...path, key]),
        message: `is not a field here${didYouMean(key, known)}`,
      }));
    }
    if (issue.code === 'invalid_key') return shapeFaults(issue.issues, path);
    const meant = issue.code === 'invalid_union' ? meantIssues(issue) : undefined;
    if (meant !== undefined) return shapeFaults(meant, path);
    return [{ path: formatPath(path), message: issue.message }];
  });
}

export function fieldsOf(schema: z.ZodType): readonly string[] {
  return schema instanceof z.ZodObject ? Object.keys(schema.shape) : [];
}

export function pathOf({ path }: Issue): readonly PathPart[] {
  return path.map((part) => (typeof part === 'number' ? part : String(part)));
}

/** The issues of the only alternative of a union whose type fits; undefined: none or several fit. */
export function meantIssues({ errors }: z.core.$ZodIssueInvalidUnion): readonly Issue[] | undefined {
  const fitting = errors.filter(
    (alternative) => !alternative.some(({ code, path }) => code === 'invalid_type' && path.length === 0),
  );
  return fitting.length === 1 ? fitting[0] : undefined;
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

const formats = new Map([
  ['datetime', 'a time as 2026-01-31T12:00:00Z'],
  ['url', 'an address as https://example.com'],
  ['base64', 'base64'],
]);

function sentence(issue: RawIssue): string {
  const { input: value } = issue;
  if (issue.code === 'invalid_type') return typeSentence(issue.expected, value);
  const { inclusive = true } = issue;
  if (issue.code === 'too_big')
    return `must ${amount(issue.origin, inclusive ? 'at most' : 'less than', Number(issue.maximum))}`;
  if (issue.code === 'too_small')
    return `must ${amount(issue.origin, inclusive ? 'at least' : 'more than', Number(issue.minimum))}`;
  if (issue.code === 'invalid_format') return `must be ${formats.get(issue.format) ?? 'of another form'}`;
  if (issue.code !== 'invalid_value') return 'is not possible here';
  const values = issue.values.map(String);
  if (value === undefined) return 'is required';
  return `must be ${oneOf(values)}${typeof value === 'string' ? didYouMean(value, values) : ''}`;
}

function amount(origin: string, bound: string, count: number): string {
  if (bound === 'at least' && count === 1 && ['string', 'array'].includes(origin)) return 'not be empty';
  if (origin === 'string') return `be ${bound} ${count} characters long`;
  if (origin === 'array') return `have ${bound} ${count} entries`;
  return `be ${bound} ${count}`;
}

function oneOf(values: readonly string[]): string {
  return values.length === 1 ? (values[0] ?? '') : `one of ${values.join(', ')}`;
}

function typeSentence(expected: string, value: unknown): string {
  const wanted = types.get(expected) ?? expected;
  if (value === undefined) return 'is required';
  if (expected === 'string' && (typeof value === 'number' || typeof value === 'boolean')) {
    return `must be text; put ${String(value)} in quotes`;
  }
  if (value === null) return `must be ${wanted}, not empty`;
  // a number that is not an integer, or NaN
  if (typeof value === 'number' && ['int', 'number'].includes(expected)) return `must be ${wanted}`;
  return `must be ${wanted}, not ${kindOf(value)}`;
}

function kindOf(value: unknown): string {
  if (Array.isArray(value)) return 'a list';
  if (isRecord(value)) return 'a mapping';
  return types.get(typeof value) ?? 'this';
}
