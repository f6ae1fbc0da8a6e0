/** The head of the pages about all tenants: tenants, slots, engines, launcher. */
import type { ReactNode } from 'react';
import { Link, useLocation } from 'wouter';

const views = [
  { to: '/tenants', label: 'Tenants' },
  { to: '/slots', label: 'Slots' },
  { to: '/engines', label: 'Engines' },
  { to: '/launcher', label: 'Launcher and hosts' },
] as const;

export function TenantsHead({ title, children }: { readonly title: string; readonly children?: ReactNode }) {
  const [path] = useLocation();
  return (
    <>
      <header className="page-head">
        <h1>{title}</h1>
        {children}
      </header>
      <nav className="tabs" aria-label="Tenants and what runs them">
        {views.map(({ to, label }) => (
          <Link key={to} href={to} aria-current={path === to ? 'page' : undefined}>
            {label}
          </Link>
        ))}
      </nav>
    </>
  );
}
