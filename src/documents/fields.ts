/**
 * The kinds of field in documents: texts with a parser, each with its JSON Schema.
 */
import { z } from 'zod';
import { longestName, nameFault } from './name.ts';
import { type Read, readInstant, readSpan, type SpanLimits } from './values.ts';

export const largestInteger = 2 ** 31 - 1;

/** A text that is valid if `fault` returns undefined. `meta` goes into the JSON Schema. */
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

export const name = text(nameFault, { minLength: 1, maxLength: longestName, pattern: '^[^\\s/@]([^/@]*[^\\s/@])?$' });
export const instant = text(faultOf(readInstant), { format: 'date-time', examples: ['2030-01-31T00:00:00Z'] });
export function paramFault(value: string): string | undefined {
  return /^[A-Za-z_][A-Za-z0-9_-]*$/.test(value)
    ? undefined
    : 'must be letters, digits, _ and -, beginning with a letter or _';
}

/** For the JSON Schema: exactly one of these fields is present and not null, or at most one unless `required`. */
export function choice(fields: Readonly<Record<string, string>>, required: boolean): Record<string, unknown> {
  const given = Object.entries(fields).map(([field, type]) => ({
    required: [field],
    properties: { [field]: { type } },
  }));
  return { oneOf: required ? given : [...given, { not: { anyOf: given } }] };
}
