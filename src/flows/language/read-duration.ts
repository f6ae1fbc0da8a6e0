/** Durations and moments of steps: literal texts are checked when the document is read, expressions when they are evaluated. */
import { longestSpanMs, readInstant, readSpan } from '../../documents/values.ts';
import type { PathPart } from '../../kernel/text/path.ts';
import { type Compiled, hasExpression } from '../expression/expression.ts';
import { brief, ExpressionError } from '../expression/values.ts';
import type { Json } from '../json.ts';
import type { Place, Reading } from './reading.ts';

/** A duration; its value is evaluated by `durationMs`. */
export function readDuration(reading: Reading, text: string, place: Place, path: readonly PathPart[]): Compiled {
  if (!hasExpression(text)) {
    const read = readSpan(text);
    if (!read.ok) reading.fault(path, read.message);
  }
  return reading.value(text, place, path);
}

/** A moment, RFC 3339; its value is evaluated by `momentMs`. */
export function readMoment(reading: Reading, text: string, place: Place, path: readonly PathPart[]): Compiled {
  if (!hasExpression(text)) {
    const read = readInstant(text);
    if (!read.ok) reading.fault(path, read.message);
  }
  return reading.value(text, place, path);
}

/** Milliseconds of a duration that an expression has computed: a text such as `5m`, or a number of seconds. */
export function durationMs(value: Json): number {
  if (typeof value === 'number' && value >= 0) {
    if (value * 1_000 > longestSpanMs) throw new ExpressionError(`${value} seconds are longer than 1000 years`);
    return Math.ceil(value * 1_000);
  }
  const read = readSpan(typeof value === 'string' ? value : '', { signed: true });
  if (!read.ok || read.value < 0)
    throw new ExpressionError(`${brief(value)} is not a duration such as 5m, or a number of seconds`);
  return read.value;
}

export function momentMs(value: Json): number {
  const read = readInstant(typeof value === 'string' ? value : '');
  if (!read.ok) throw new ExpressionError(`${brief(value)} is not a moment: it ${read.message}`);
  return read.value;
}
