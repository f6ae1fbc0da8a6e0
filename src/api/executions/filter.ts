/** Which executions a list shows, or an operation is for. */
import type { z } from 'zod';
import type { HeadFilter } from '../../flows/executions/search-heads.ts';
import { isId } from '../../kernel/id.ts';
import { badRequest } from '../context.ts';
import type { executionFilter } from './shapes.ts';

type Filter = z.output<z.ZodObject<typeof executionFilter>> & {
  readonly parent?: string | undefined;
  readonly cursor?: string | undefined;
};

/** `part`: where the request has it. */
export function filterOf(filter: Filter, part: 'query' | 'body'): Omit<HeadFilter, 'limit'> {
  const { flow, version, status, label, key, cursor, parent } = filter;
  if (cursor !== undefined && !isId(cursor)) throw badRequest(`${part}.cursor`, 'is not `next` of a page');
  return {
    flow,
    version,
    status: status?.length === 0 ? undefined : status,
    label,
    key,
    parent,
    cursor,
    createdAfter: filter.created_after,
    createdBefore: filter.created_before,
  };
}
