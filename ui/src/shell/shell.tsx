/** The frame around every page: where one can go, whether the page is live, and who one is. */
import type { ReactNode } from 'react';
import { Link } from 'wouter';
import { tenantBase, tenantLabel } from '../client.ts';
import { LiveStatus } from '../live/live-status.tsx';
import { useMe } from '../session/session.ts';
import { SignOut } from '../session/sign-out.tsx';
import { Navigation } from './navigation.tsx';
import './shell.css';
import { Wordmark } from './wordmark.tsx';

export function Shell({ children }: { readonly children: ReactNode }) {
  return (
    <div className="shell">
      <a className="skip" href="#main">
        Skip to the page
      </a>
      <header className="side">
        <Link href="/" className="side-home" aria-label="millrace, home">
          <Wordmark />
        </Link>
        <Navigation />
        <div className="side-foot">
          <LiveStatus />
          <Who />
          <SignOut />
        </div>
      </header>
      <main id="main" className="page" tabIndex={-1}>
        {children}
      </main>
    </div>
  );
}

function Who() {
  const { data: me } = useMe();
  if (me === undefined) return null;
  return (
    <p className="who">
      {tenantBase === '' ? null : <span className="who-tenant">{tenantLabel()}</span>}
      <span className="who-actor" title={me.actor}>
        {me.actor}
      </span>
      {me.actor === me.role ? null : <span className="who-role">{me.role}</span>}
    </p>
  );
}
