/** The faults of a value, as `path message`. */
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { faultWords, fieldsOf, shapeFaults } from './shape-faults.ts';

function faultsOf(schema: z.ZodType, value: unknown): string[] {
  const { error } = schema.safeParse(value, faultWords);
  return shapeFaults(error?.issues ?? [], ['body'], fieldsOf(schema)).map(({ path, message }) => `${path} ${message}`);
}

const shape = z.strictObject({
  name: z.string().min(1).max(5),
  limit: z.int().min(1).max(9).optional(),
  state: z.enum(['active', 'paused']).optional(),
  at: z.iso.datetime().optional(),
  tags: z.array(z.string()).min(1).max(2).optional(),
  dry: z.literal(true).optional(),
  page: z.coerce.number().int().optional(),
  share: z.number().positive().lt(1).optional(),
  env: z.record(z.string().max(3), z.string()).optional(),
  by: z.union([z.string().max(3), z.strictObject({ id: z.int() })]).optional(),
  code: z.string().regex(/^x/).optional(),
});

describe('shapeFaults', () => {
  it.each([
    [undefined, 'body is required'],
    [[], 'body must be a mapping, not a list'],
    [{}, 'body.name is required'],
    [{ name: 5 }, 'body.name must be text; put 5 in quotes'],
    [{ name: null }, 'body.name must be text, not empty'],
    [{ name: {} }, 'body.name must be text, not a mapping'],
    [{ name: '' }, 'body.name must not be empty'],
    [{ name: 'abcdef' }, 'body.name must be at most 5 characters long'],
    [{ name: 'a', limit: 0 }, 'body.limit must be at least 1'],
    [{ name: 'a', limit: 10 }, 'body.limit must be at most 9'],
    [{ name: 'a', limit: 1.5 }, 'body.limit must be a whole number'],
    [{ name: 'a', limit: '1' }, 'body.limit must be a number, not text'],
    [{ name: 'a', page: 'one' }, 'body.page must be a number'],
    [{ name: 'a', state: 'pausd' }, 'body.state must be one of active, paused; did you mean paused?'],
    [{ name: 'a', at: 'noon' }, 'body.at must be a time as 2026-01-31T12:00:00Z'],
    [{ name: 'a', tags: [] }, 'body.tags must not be empty'],
    [{ name: 'a', tags: ['a', 'b', 'c'] }, 'body.tags must have at most 2 entries'],
    [{ name: 'a', tags: ['a', 1] }, 'body.tags[1] must be text; put 1 in quotes'],
    [{ name: 'a', dry: false }, 'body.dry must be true'],
    [{ name: 'a', share: 0 }, 'body.share must be more than 0'],
    [{ name: 'a', share: 1 }, 'body.share must be less than 1'],
    [{ name: 'a', env: { long: '' } }, 'body.env.long must be at most 3 characters long'],
    [{ name: 'a', by: 'abcd' }, 'body.by must be at most 3 characters long'],
    [{ name: 'a', by: { id: 'x' } }, 'body.by.id must be a number, not text'],
    [{ name: 'a', by: 4 }, 'body.by is not possible here'],
    [{ name: 'a', code: 'y' }, 'body.code must be of another form'],
    [{ name: 'a', limt: 3 }, 'body.limt is not a field here; did you mean limit?'],
    [{ name: 'a', 'x y': 3 }, 'body["x y"] is not a field here'],
  ])('the fault of %j is: %s', (value, words) => expect(faultsOf(shape, value)).toEqual([words]));

  it('all faults are reported together', () => {
    expect(faultsOf(shape, { limit: 0, one: 1, two: 2 })).toEqual([
      'body.name is required',
      'body.limit must be at least 1',
      'body.one is not a field here',
      'body.two is not a field here',
    ]);
  });

  it('of very many unknown fields some are reported', () => {
    const many = Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`limt${i}`, 1]));
    expect(faultsOf(shape, { name: 'a', ...many })).toHaveLength(50);
  });

  it('a message of the schema itself takes precedence', () => {
    const own = z.string({ error: 'is no name' }).min(2, 'is too short a name');
    expect([faultsOf(own, 4), faultsOf(own, 'a')]).toEqual([['body is no name'], ['body is too short a name']]);
  });
});
