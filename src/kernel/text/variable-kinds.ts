/** The kinds of environment variables: each a text that becomes a value, or a fault for the operator. */
import { z } from 'zod';
import { parseArmed } from '../checkpoint.ts';
import { parseDuration } from './duration.ts';
import { findRootKeyFault, findSecretKeyFault } from './secret-text.ts';

export const text = z.string().min(1);
export const yes = z
  .enum(['true', 'false'])
  .default('false')
  .transform((value) => value === 'true');
/** Digits only: JavaScript would also convert other texts, such as a blank to 0. */
export const count = (standard: number, min: number, max: number) =>
  z
    .string()
    .regex(/^\d{1,9}$/, 'must be a whole number')
    .transform(Number)
    .pipe(z.number().min(min).max(max))
    .default(standard);
export const bytes = z
  .string()
  .regex(/^\d{1,15}$/, 'must be a whole number of bytes')
  .transform(Number)
  .refine((value) => value >= 1_048_576, 'must be at least 1048576 (1 MiB)');
export const port = z
  .string()
  .regex(/^\d{1,5}$/, 'must be a whole number')
  .transform(Number)
  .pipe(z.number().max(65_535));
export const listOf = (standard: string) =>
  z
    .string()
    .default(standard)
    .transform((value) =>
      value
        .split(',')
        .map((part) => part.trim())
        .filter((part) => part !== ''),
    );
export const list = listOf('');
export const duration = z.string().transform((value, context) => {
  const parsed = parseDuration(value);
  if (parsed.ok) return parsed.ms;
  context.addIssue({ code: 'custom', message: parsed.message });
  return z.NEVER;
});
/** Null: forever. */
export const keptFor = z.string().transform((value, context) => {
  if (value === 'forever') return null;
  const parsed = parseDuration(value);
  if (parsed.ok && parsed.ms >= 1_000) return parsed.ms;
  context.addIssue({ code: 'custom', message: parsed.ok ? 'must be at least 1s, or forever' : parsed.message });
  return z.NEVER;
});
export const keptCount = z
  .string()
  .regex(/^([1-9]\d{0,11}|forever)$/, 'must be a whole number of at least 1, or forever')
  .transform((value) => (value === 'forever' ? null : Number(value)));
export const checkpoint = z.string().transform((value, context) => {
  const parsed = parseArmed(value);
  if (parsed !== undefined) return parsed;
  context.addIssue({
    code: 'custom',
    message: 'must be the name of a checkpoint, such as triggers.fire, or triggers.fire:2 for its second passage',
  });
  return z.NEVER;
});
const emptySecret = 'is empty: set a key, or unset the variable to use the file in the home';
export const rootKey = z.string().superRefine((key, context) => {
  const fault = key === '' ? emptySecret : findRootKeyFault(key);
  if (fault !== undefined) context.addIssue({ code: 'custom', message: fault });
});
/** Several, comma-separated, newest first. */
export const secretKeys = z
  .string()
  .min(1, { error: emptySecret, abort: true })
  .transform((value) => value.split(',').map((part) => part.trim()))
  .superRefine((keys, context) => {
    for (const [index, key] of keys.entries()) {
      const fault = findSecretKeyFault(key);
      const which = keys.length === 1 ? '' : `key ${index + 1} of ${keys.length} `;
      if (fault !== undefined) context.addIssue({ code: 'custom', message: which + fault });
    }
  });
export const postgresUrl = z.url({ protocol: /^postgres(ql)?$/, error: 'not a postgres:// address' });
