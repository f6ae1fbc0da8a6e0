/** The heading of pages about flows, with links to the others. */
import type { ReactNode } from 'react';
import { Link, useLocation } from 'wouter';
import '../executions/executions.css';

const pages = [
  ['/flows', 'Flows'],
  ['/executions', 'Executions'],
  ['/workitems', 'Work items'],
] as const;

export function FlowsHead({ children }: { readonly children?: ReactNode }) {
  const [path] = useLocation();
  return (
    <>
      <header className="page-head">
        <h1>Flows</h1>
        {children}
      </header>
      <nav className="tabs" aria-label="Pages of flows">
        {pages.map(([to, label]) => (
          <Link key={to} href={to} aria-current={path === to ? 'page' : undefined}>
            {label}
          </Link>
        ))}
      </nav>
    </>
  );
}
