/** What a query brought: room while it is on its way, the reason where it failed, else whatever is made of it. */
import type { UseQueryResult } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { Failure } from './failure.tsx';
import { Loading } from './loading.tsx';

interface Props<T> {
  readonly of: Pick<UseQueryResult<T>, 'data' | 'error' | 'refetch'>;
  /** For a screen reader: `Reading runs`. */
  readonly what: string;
  readonly children: (data: T) => ReactNode;
}

export function Answer<T>({ of: { data, error, refetch }, what, children }: Props<T>) {
  if (data !== undefined) return children(data);
  return error === null ? <Loading what={what} /> : <Failure error={error} retry={refetch} />;
}
