/**
 * The result of a query: a placeholder while it loads, the reason if it failed, otherwise the rendered data. Data that was read
 * before stays visible if it cannot be read again, with a note; data that is gone or forbidden by now does not. If the banner
 * already says that the tenant cannot be read, nothing is repeated here.
 */
import type { UseQueryResult } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { CallFailed } from '../../../src/http/client.ts';
import { statusOf } from '../client.ts';
import { useAccess } from '../tenants/access.tsx';
import { Failure, sentenceOf } from './failure.tsx';
import { Loading } from './loading.tsx';

interface Props<T> {
  readonly of: Pick<UseQueryResult<T>, 'data' | 'error'> & { readonly refetch: () => unknown };
  /** For a screen reader: `Reading runs`. */
  readonly what: string;
  readonly children: (data: T) => ReactNode;
}

const gone = new Set<number | undefined>([403, 404]);

const unserved: ReadonlySet<unknown> = new Set(['tenant_unavailable', 'not_installed', 'no_engine']);

/** The server could answer, but has no way to this tenant. */
function isOfTenant(error: Error): boolean {
  return error instanceof CallFailed && unserved.has(error.problem?.code);
}

export function Answer<T>({ of: { data, error, refetch }, what, children }: Props<T>) {
  const isClosed = useAccess().state === 'closed';
  if (data === undefined || gone.has(statusOf(error))) {
    if (isClosed && (error === null || isOfTenant(error))) return null;
    return error === null ? <Loading what={what} /> : <Failure error={error} retry={refetch} />;
  }
  return (
    <>
      {error === null ? null : (
        <p className="outdated" role="status">
          Could not be read again, so this may be old. {sentenceOf(error)}
        </p>
      )}
      {children(data)}
    </>
  );
}
