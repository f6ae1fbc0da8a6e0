/** Shapes that several endpoints share. Names on the wire are Waterwheel's where it has one. */
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

/** Four digits, in UTC too: an offset may lead out of them. */
const isYear = (year: number): boolean => year >= 1_000 && year <= 9_999;

/** A time in an answer. */
export const time = z.iso.datetime({ offset: true });
export const priority = z.enum(['backfill', 'low', 'normal', 'high']);
export const idPath = z.object({ id });

/** Which job, by id and by name. */
export const jobName = z.object({ id, name: z.string(), project: z.string() });

/** How many at most; a limit beyond the bound is a fault, not a silent cut. */
export const limit = (standard: number) => z.coerce.number().int().min(1).max(1000).default(standard);

/** Waterwheel's lists are bare arrays, of which a caller sees the first items only. With `limit` or `cursor` they are pages. */
export const pageWish = z.object({
  limit: z.coerce.number().int().min(1).max(1000).optional().describe('answers a page: `items` and `next`'),
  cursor: z.string().max(2_000).optional().describe('`next` of the page before'),
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

/** What a request may ask for: `ready`, our own word, is Waterwheel's `active`. */
export const stateWords = [...states, 'ready'] as const;
export const stateOf = (word: (typeof stateWords)[number]): State => (word === 'ready' ? 'active' : word);

export const stateList = z.string().transform((text, context) => {
  const parts = text.split(',').filter((part) => part !== '');
  const wrong = parts.find((part) => !(stateWords as readonly string[]).includes(part));
  if (wrong === undefined) return (parts as (typeof stateWords)[number][]).map(stateOf);
  context.addIssue({ code: 'custom', message: `no such state: ${wrong}; states are ${stateWords.join(', ')}` });
  return z.NEVER;
});

export const flag = z
  .enum(['true', 'false'])
  .default('false')
  .transform((text) => text === 'true');

export const fault = z.object({ path: z.string(), message: z.string() });
