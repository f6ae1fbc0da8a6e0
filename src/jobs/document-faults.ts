/** Turns what zod says about a document into faults: a path, and a sentence that a person can act on. */
import type { z } from 'zod';
import type { Fault } from '../errors.ts';
import { objects } from './document.ts';
import { formatPath, type PathPart, valueAt } from '../kernel/path.ts';
import { meantIssues, pathOf } from '../kernel/shape-faults.ts';
import { didYouMean } from '../kernel/suggest.ts';

type Issue = z.core.$ZodIssue;

/** Nobody reads more, and each costs a search for what was meant. */
export const mostFaults = 1_000;

export function faultsOf(document: unknown, issues: readonly Issue[], prefix: readonly PathPart[] = []): Fault[] {
  return issues.slice(0, mostFaults).flatMap((issue, i) => {
    const path = [...prefix, ...pathOf(issue)];
    if (issue.code === 'unrecognized_keys') {
      return issue.keys.slice(0, mostFaults).map((key) => unknownField(path, key));
    }
    const meant = issue.code === 'invalid_union' ? meantIssues(issue) : undefined;
    if (meant !== undefined) return faultsOf(document, meant, path);
    if (issue.code === 'invalid_key') return faultsOf(document, issue.issues, path);
    const value = valueAt(document, path);
    const zone = path.at(-1) === 'timezone' && typeof value === 'string' && i < mostZoneHints ? zoneHint(value) : '';
    return [{ path: formatPath(path), message: `${issue.message}${zone}` }];
  });
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

/** A hint compares a name with some 400 zones. */
const mostZoneHints = 20;

function zoneHint(value: string): string {
  return didYouMean(value, Intl.supportedValuesOf('timeZone'));
}
