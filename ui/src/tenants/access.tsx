/**
 * Whether the current tenant can be read, checked once for all components: the banner says why not, pages neither wait in vain
 * nor repeat it, and no component follows changes of a tenant that does not exist.
 */
import { useQueryClient } from '@tanstack/react-query';
import { createContext, type ReactNode, use, useEffect, useMemo } from 'react';
import { isDatabaseFault, statusOf, tenantName } from '../client.ts';
import { sentenceOf } from '../kit/failure.tsx';
import { isClosed } from './standing.ts';
import { type TenantWhy, useTenantWhy } from './use-tenants.ts';

interface Access {
  /** `unknown`: not answered yet, or there was no answer. */
  readonly state: 'unknown' | 'open' | 'closed' | 'missing';
  readonly why: TenantWhy | undefined;
  /** Why the database does not answer the server. */
  readonly fault: string | undefined;
}

const AccessContext = createContext<Access>({ state: 'unknown', why: undefined, fault: undefined });

export function AccessProvider({ children }: { readonly children: ReactNode }) {
  const client = useQueryClient();
  const { data: why, error } = useTenantWhy(tenantName);
  const state = stateOf(why, error);
  const fault = isDatabaseFault(error) ? sentenceOf(error) : undefined;
  const isUnreadable = state === 'closed' || fault !== undefined;
  useEffect(() => {
    if (!isUnreadable) return undefined;
    // what could not be read meanwhile
    return () => void client.invalidateQueries();
  }, [client, isUnreadable]);
  const access = useMemo(() => ({ state, why, fault }), [state, why, fault]);
  return <AccessContext value={access}>{children}</AccessContext>;
}

function stateOf(why: TenantWhy | undefined, error: Error | null): Access['state'] {
  if (statusOf(error) === 404) return 'missing';
  if (why === undefined) return 'unknown';
  return isClosed(why.reason_code) ? 'closed' : 'open';
}

export function useAccess(): Access {
  return use(AccessContext);
}
