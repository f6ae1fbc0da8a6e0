/** The heading of the bus, with its pages. Their addresses do not begin with `/bus`, which is the API. */
import type { ReactNode } from 'react';
import { Link, useLocation } from 'wouter';
import './bus.css';

const pages = [
  ['/topics', 'Topics'],
  ['/subscribers', 'Subscribers'],
  ['/dead-letters', 'Dead letters'],
  ['/errands', 'Errands'],
] as const;

export function BusHead({ children }: { readonly children?: ReactNode }) {
  const [path] = useLocation();
  return (
    <>
      <header className="page-head">
        <h1>Bus</h1>
        {children}
      </header>
      <nav className="tabs" aria-label="Pages of the bus">
        {pages.map(([to, label]) => (
          <Link key={to} href={to} aria-current={path === to ? 'page' : undefined}>
            {label}
          </Link>
        ))}
      </nav>
    </>
  );
}
