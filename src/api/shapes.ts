/** Schemas that several endpoints share. Field names are Waterwheel's, if it has the field. */
import { z } from 'zod';

export const id = z.guid({ error: 'not a UUID' }).describe('a UUID');

/** An instant in a path, query or body: RFC 3339 with an offset. Parsed to a `Date`. */
export const instant = z.iso
  .datetime({ offset: true, error: 'not an RFC 3339 time such as 2026-01-31T00:00:00Z' })
  .transform((text, context) => {
    const date = new Date(text);
    if (!Number.isNaN(date.getTime()) && isYear(date.getUTCFullYear())) return date;
    context.addIssue({ code: 'custom', message: 'not a time that exists' });
    return z.NEVER;
  });

/** The year must have four digits in UTC as well. An offset may lead outside of that range. */
const isYear = (year: number): boolean => year >= 1_000 && year <= 9_999;

/** A time in an answer. */
export const time = z.iso.datetime({ offset: true });
export const priority = z.enum(['backfill', 'low', 'normal', 'high']);
export const idPath = z.object({ id });

/** A job by id and name. */
export const jobName = z.object({ id, name: z.string(), project: z.string() });

/** Maximum items. A limit beyond the bound is a fault; it is not reduced silently. */
export const limit = (standard: number) => z.coerce.number().int().min(1).max(1000).default(standard);

/** Waterwheel's lists are bare arrays of the first items. With `limit` or `cursor` the response is a page. */
export const pageWish = z.object({
  limit: z.coerce.number().int().min(1).max(1000).optional().describe('returns a page: `items` and `next`'),
  cursor: z.string().max(2_000).optional().describe('`next` of the previous page'),
});
export const arrayOrPage = <T extends z.ZodType>(item: T) =>
  z.union([z.array(item), z.object({ items: z.array(item), next: z.string().nullable() })]);

/** Waterwheel's list of states: `state=running,failure`. */
export const states = [
  'waiting',
  'active',
  'running',
  'success',
  'failure',
  'timeout',
  'error',
  'cancelled',
  'retry',
] as const;
export type State = (typeof states)[number];
export const state = z.enum(states);

/** States that a request may name. Our `ready` is Waterwheel's `active`. */
export const stateWords = [...states, 'ready'] as const;
export const stateOf = (word: (typeof stateWords)[number]): State => (word === 'ready' ? 'active' : word);

export const stateList = z.string().transform((text, context) => {
  const parts = text.split(',').filter((part) => part !== '');
  const wrong = parts.find((part) => !(stateWords as readonly string[]).includes(part));
  if (wrong === undefined) return (parts as (typeof stateWords)[number][]).map(stateOf);
  context.addIssue({ code: 'custom', message: `unknown state: ${wrong}; the states are ${stateWords.join(', ')}` });
  return z.NEVER;
});

export const flag = z
  .enum(['true', 'false'])
  .default('false')
  .transform((text) => text === 'true');

export const fault = z.object({ path: z.string(), message: z.string() });
