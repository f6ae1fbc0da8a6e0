/** The frame around every page: where one can go, whether the page is live, and who one is. */
import { type ReactNode, useCallback, useState } from 'react';
import { Link, useLocation } from 'wouter';
import { LiveStatus } from '../live/live-status.tsx';
import { useMe } from '../session/session.ts';
import { SignOut } from '../session/sign-out.tsx';
import { HelpDialog } from './help-dialog.tsx';
import { Navigation, usePlaces } from './navigation.tsx';
import { SearchDialog } from './search-dialog.tsx';
import './shell.css';
import { useShortcuts } from './shortcuts.ts';
import { Banners, Existing } from './tenant-banner.tsx';
import { TenantSwitcher } from './tenant-switcher.tsx';
import { Wordmark } from './wordmark.tsx';

export function Shell({ children }: { readonly children: ReactNode }) {
  const [open, setOpen] = useState<'search' | 'help' | 'tenants'>();
  const [, navigate] = useLocation();
  const places = usePlaces().flat();
  const close = useCallback(() => setOpen(undefined), []);
  const search = useCallback(() => setOpen('search'), []);
  const help = useCallback(() => setOpen('help'), []);
  const tenants = useCallback(() => setOpen('tenants'), []);
  // it closes when it loses the focus, perhaps to what has been opened since
  const closeTenants = useCallback(() => setOpen((now) => (now === 'tenants' ? undefined : now)), []);
  const go = useCallback(
    (letter: string) => {
      const place = places.find((candidate) => candidate.letter === letter);
      if (place !== undefined) navigate(place.to);
    },
    [navigate, places],
  );
  useShortcuts({ search, help, tenants, go });
  return (
    <div className="shell">
      <a className="skip" href="#main">
        Skip to the page
      </a>
      <header className="side">
        <Link href="/" className="side-home" aria-label="millrace, home">
          <Wordmark />
        </Link>
        <TenantSwitcher isOpen={open === 'tenants'} open={tenants} close={closeTenants} />
        <SearchButton search={search} />
        <Navigation />
        <div className="side-foot">
          <LiveStatus />
          <Who />
          <span className="side-links">
            <button type="button" className="plain-button" onClick={help}>
              Keyboard
            </button>
            <SignOut />
          </span>
        </div>
      </header>
      <main id="main" className="page" tabIndex={-1}>
        <Banners />
        <Existing>{children}</Existing>
      </main>
      {open === 'search' ? <SearchDialog close={close} /> : null}
      {open === 'help' ? <HelpDialog close={close} /> : null}
    </div>
  );
}

function SearchButton({ search }: { readonly search: () => void }) {
  return (
    <button type="button" className="side-search" aria-label="Search" onClick={search} aria-keyshortcuts="/">
      <svg className="icon" viewBox="0 0 16 16" aria-hidden="true">
        <path d="M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10ZM10.7 10.7 14 14" />
      </svg>
      <span className="side-search-label">Search</span>
      <kbd aria-hidden="true">/</kbd>
    </button>
  );
}

function Who() {
  const { data: me } = useMe();
  if (me === undefined) return null;
  return (
    <p className="who">
      <span className="who-actor" title={me.actor}>
        {me.actor}
      </span>
      {me.actor === me.role ? null : <span className="who-role">{me.role}</span>}
    </p>
  );
}
