/** The name of the current tenant; for root, a menu that leads to the same page of another tenant. */
import { type FocusEvent, type KeyboardEvent, useEffect, useId, useRef, useState } from 'react';
import { Link, useLocation, useSearch } from 'wouter';
import { homeOf, tenantName } from '../client.ts';
import { InlineFailure } from '../kit/failure.tsx';
import { useIsRoot } from '../session/root-only.tsx';
import { type Tenant, toneOf } from '../tenants/standing.ts';
import { useTenantList } from '../tenants/use-tenants.ts';
import { findTenants, pageIn } from './switch.ts';
import './switcher.css';

interface Props {
  readonly isOpen: boolean;
  readonly open: () => void;
  readonly close: () => void;
}

export function TenantSwitcher({ isOpen, open, close }: Props) {
  const button = useRef<HTMLButtonElement>(null);
  const id = useId();
  if (!useIsRoot()) {
    return (
      <p className="switcher-label" title={tenantName}>
        <span className="unseen">Tenant </span>
        {tenantName}
      </p>
    );
  }
  const leave = (event: FocusEvent): void => {
    if (!event.currentTarget.contains(event.relatedTarget)) close();
  };
  const press = (event: KeyboardEvent): void => {
    if (event.key !== 'Escape' || !isOpen) return;
    event.preventDefault();
    close();
    button.current?.focus();
  };
  return (
    // focus that leaves it closes it
    <div className="switcher" onBlur={leave} onKeyDown={press}>
      <button
        ref={button}
        type="button"
        className="switcher-button"
        aria-expanded={isOpen}
        aria-controls={id}
        aria-label={`Tenant ${tenantName}, switch`}
        aria-keyshortcuts="t"
        title={tenantName}
        onClick={isOpen ? close : open}
      >
        <span className="switcher-name">{tenantName}</span>
        <svg className="icon" viewBox="0 0 16 16" aria-hidden="true">
          <path d="m5 6.2 3-3 3 3M5 9.8l3 3 3-3" />
        </svg>
      </button>
      <div id={id} className="switcher-panel" hidden={!isOpen} tabIndex={-1}>
        {isOpen ? <Menu close={close} /> : null}
      </div>
    </div>
  );
}

/** With more than this many, typing finds one sooner than the eye does. */
const inSight = 8;

function Menu({ close }: { readonly close: () => void }) {
  const { data, error } = useTenantList();
  const [question, ask] = useState('');
  const box = useRef<HTMLDivElement>(null);
  const all = data?.items ?? [];
  const isThere = data !== undefined;
  useEffect(() => {
    const first = box.current?.querySelector<HTMLElement>('input, [aria-current]') ?? box.current?.querySelector('a');
    first?.focus();
  }, [isThere]);
  return (
    <div ref={box} className="switcher-menu" onKeyDown={step}>
      {all.length > inSight ? (
        <input
          className="input"
          type="search"
          aria-label="Find a tenant"
          placeholder="Find a tenant"
          spellCheck={false}
          autoComplete="off"
          value={question}
          onChange={(event) => ask(event.currentTarget.value)}
        />
      ) : null}
      <InlineFailure error={error} />
      <TenantLinks tenants={findTenants(all, question)} />
      <Link href="/tenants" className="switcher-all" onClick={close}>
        All tenants
      </Link>
    </div>
  );
}

/** Up and down go from one to the next; from the search, down goes to the first, and Enter takes it. */
function step(event: KeyboardEvent<HTMLDivElement>): void {
  const stops = [...event.currentTarget.querySelectorAll<HTMLElement>('input, a')];
  const at = stops.findIndex((stop) => stop === document.activeElement);
  if (event.key === 'Enter' && stops[at] instanceof HTMLInputElement) {
    event.currentTarget.querySelector<HTMLElement>('ul a')?.click();
  } else {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (by === undefined) return;
    stops[Math.max(0, Math.min(stops.length - 1, at + by))]?.focus();
  }
  event.preventDefault();
}

function TenantLinks({ tenants }: { readonly tenants: readonly Tenant[] }) {
  const [path] = useLocation();
  const search = useSearch();
  if (tenants.length === 0) return <p className="muted switcher-none">No such tenant.</p>;
  return (
    <ul aria-label="Tenants">
      {tenants.map((tenant) => (
        <li key={tenant.id}>
          {/* not a step within this app: pages of another tenant have another base */}
          <a
            href={pageIn(homeOf(tenant.name), path, search)}
            className="switcher-link"
            aria-current={tenant.name === tenantName ? 'true' : undefined}
          >
            <span className="switcher-name">{tenant.name}</span>
            {toneOf(tenant) === 'well' ? null : (
              <span className="switcher-state" data-tone={toneOf(tenant)}>
                {tenant.state}
              </span>
            )}
          </a>
        </li>
      ))}
    </ul>
  );
}
