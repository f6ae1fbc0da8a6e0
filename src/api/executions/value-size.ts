/** Bounds values of requests that executions keep. */
import { MillraceError } from '../../errors.ts';
import { flowLimits } from '../../flows/interpreter/run.ts';
import { type Json, sizeOf } from '../../flows/json.ts';

export function isTooLarge(value: unknown): boolean {
  return sizeOf(value as Json, flowLimits.valueChars) > flowLimits.valueChars;
}

/** The request was parsed from JSON. */
export function requireSmall(value: unknown, path: string): Json {
  if (isTooLarge(value)) throw tooLarge(path);
  return value as Json;
}

export function tooLarge(path: string): MillraceError {
  return new MillraceError('too_large', `${path}: has more than ${flowLimits.valueChars} characters as JSON`);
}
