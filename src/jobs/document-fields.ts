/**
 * The kinds of field that a job document is made of: texts that a reader must understand, each with what the JSON Schema
 * says of it.
 */
import { z } from 'zod';
import { longestName, nameFault } from './name.ts';
import { parseReference } from './reference.ts';
import { type Read, readInstant, readSpan, type SpanLimits } from './values.ts';
import { isZone } from './zone.ts';

export const largestInteger = 2 ** 31 - 1;

/** A text that some reader must understand. */
export function text(fault: (text: string) => string | undefined, meta: Record<string, unknown> = {}) {
  return z
    .string()
    .check((context) => {
      const message = fault(context.value);
      if (message !== undefined) context.issues.push({ code: 'custom', input: context.value, message });
    })
    .meta(meta);
}

export function faultOf<T>(read: (text: string) => Read<T>): (text: string) => string | undefined {
  return (text) => {
    const result = read(text);
    return result.ok ? undefined : result.message;
  };
}

export function span(limits: SpanLimits, examples: readonly string[]) {
  return text(
    faultOf((value) => readSpan(value, limits)),
    { minLength: 1, examples },
  );
}

export function filled(value: string): string | undefined {
  return value === '' ? 'must not be empty' : undefined;
}

export function zoneFault(value: string): string | undefined {
  return isZone(value) ? undefined : 'is not an IANA time zone such as Europe/Berlin';
}

export const name = text(nameFault, { minLength: 1, maxLength: longestName, pattern: '^[^\\s/@]([^/@]*[^\\s/@])?$' });
export const instant = text(faultOf(readInstant), { format: 'date-time', examples: ['2030-01-31T00:00:00Z'] });
export const reference = text(faultOf(parseReference), {
  pattern: '^([^/@]+/){0,2}(task|trigger)/[^/@]+(@.+)?$',
  examples: ['trigger/daily', 'task/extract', 'other job/task/load', 'task/end@1d'],
});

export function paramFault(value: string): string | undefined {
  return /^[A-Za-z_][A-Za-z0-9_-]*$/.test(value)
    ? undefined
    : 'must be letters, digits, _ and -, beginning with a letter or _';
}

/** For the JSON Schema: exactly, or at most, one of these fields is there and not null. */
export function choice(fields: Readonly<Record<string, string>>, required: boolean): Record<string, unknown> {
  const given = Object.entries(fields).map(([field, type]) => ({
    required: [field],
    properties: { [field]: { type } },
  }));
  return { oneOf: required ? given : [...given, { not: { anyOf: given } }] };
}
