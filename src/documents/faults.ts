/** Turns zod's issues about a document into faults: a path, and a sentence that a person can act on. */
import type { z } from 'zod';
import type { Fault } from '../errors.ts';
import { formatPath, type PathPart, valueAt } from '../kernel/text/path.ts';
import { meantIssues, pathOf } from '../kernel/text/shape-faults.ts';
import { didYouMean } from '../kernel/text/suggest.ts';

type Issue = z.core.$ZodIssue;

/** Maximum faults, and maximum warnings, that are reported for a document. Each may cost a search for a suggestion. */
export const maxFaults = 100;

/** The names of the objects and fields of a kind of document. */
export interface Vocabulary {
  /** By path without indexes. */
  readonly objects: ReadonlyMap<string, { readonly label: string; readonly fields: readonly string[] }>;
  /** Fields of other schedulers, or at the wrong place → the field to use here. */
  readonly movedFields: ReadonlyMap<string, string>;
}

export function faultsOf(
  document: unknown,
  issues: readonly Issue[],
  vocabulary: Vocabulary,
  prefix: readonly PathPart[] = [],
): Fault[] {
  // one more than is reported, so that the caller can say that there are more
  return issues.slice(0, maxFaults + 1).flatMap((issue, i) => {
    const path = [...prefix, ...pathOf(issue)];
    if (issue.code === 'unrecognized_keys') {
      return issue.keys.slice(0, maxFaults + 1).map((key) => unknownField(path, key, vocabulary));
    }
    const meant = issue.code === 'invalid_union' ? meantIssues(issue) : undefined;
    if (meant !== undefined) return faultsOf(document, meant, vocabulary, path);
    if (issue.code === 'invalid_key') return faultsOf(document, issue.issues, vocabulary, path);
    const value = valueAt(document, path);
    const zone = path.at(-1) === 'timezone' && typeof value === 'string' && i < maxZoneHints ? zoneHint(value) : '';
    return [{ path: formatPath(path), message: `${issue.message}${zone}` }];
  });
}

function unknownField(path: readonly PathPart[], key: string, { objects, movedFields }: Vocabulary): Fault {
  const object = objects.get(path.filter((part) => typeof part === 'string').join('.'));
  const hint = object === undefined ? '' : didYouMean(key, object.fields) || movedHint(movedFields.get(key));
  return {
    path: formatPath([...path, key]),
    message: object === undefined ? 'is not a field here' : `is not a field of ${object.label}${hint}`,
  };
}

function movedHint(place: string | undefined): string {
  return place === undefined ? '' : `; did you mean ${place}?`;
}

/** Maximum hints about time zones for one document. Each hint compares a name with some 400 zones. */
const maxZoneHints = 20;

function zoneHint(value: string): string {
  return didYouMean(value, Intl.supportedValuesOf('timeZone'));
}
