/** One quiet line for root: which tenants should run and do not. Nothing where all is well. */
import { Link } from 'wouter';
import { useIsRoot } from '../session/root-only.tsx';
import { needsLook } from './standing.ts';
import './tenants.css';
import { useTenantList } from './use-tenants.ts';

const named = 3;

export function TenantsLine() {
  const { data } = useTenantList(useIsRoot());
  const items = (data?.items ?? []).filter(needsLook);
  const more = items.length - named;
  if (items.length === 0) return null;
  return (
    <p className="tenants-line" role="status">
      <svg className="icon" viewBox="0 0 16 16" aria-hidden="true">
        <path d="M8 2.5 14 13H2ZM8 6.6v2.8M8 11.2h.01" />
      </svg>
      <Link href="/tenants?show=look">
        {items.length === 1 ? 'One tenant does not run' : `${items.length} tenants do not run`}
      </Link>
      :{' '}
      {items
        .slice(0, named)
        .map(({ name }) => name)
        .join(', ')}
      {more > 0 ? ` and ${more} more` : ''}.
    </p>
  );
}
