/**
 * The places of the house, as a table: who may go there, and the letter that leads there after `g`. Places of the installation work
 * below every tenant's prefix, which links keep.
 */
import type { ComponentType } from 'react';
import { Link, useLocation } from 'wouter';
import type { GatewayAnswer } from '../client.ts';
import { useMe } from '../session/session.ts';
import { MyWorkitems } from '../workitems/my-workitems.tsx';

type Role = GatewayAnswer<'GET /api/me'>['role'];

interface Place {
  readonly to: string;
  readonly label: string;
  readonly letter: string;
  readonly holds: RegExp;
  /** On a 16 × 16 field. */
  readonly icon: string;
  /** Without it, every user that can sign in may open the page. */
  readonly only?: Role;
  /** Beside the label, such as a count. */
  readonly Note?: ComponentType;
}

const places: readonly (readonly Place[])[] = [
  [
    { to: '/', label: 'Home', letter: 'h', holds: /^\/$/, icon: 'M2.5 8 8 3l5.5 5M4 7v6h8V7' },
    {
      to: '/projects',
      label: 'Projects',
      letter: 'p',
      holds: /^\/projects(\/|$)/,
      icon: 'M2 4.5h4l1.5 2H14v6.5H2Z',
    },
    { to: '/jobs', label: 'Jobs', letter: 'j', holds: /^\/jobs(\/|$)/, icon: 'M3 4h10M3 8h10M3 12h6' },
    { to: '/runs', label: 'Runs', letter: 'r', holds: /^\/runs(\/|$)/, icon: 'M5 3.2v9.6L12.8 8Z' },
    {
      to: '/flows',
      label: 'Flows',
      letter: 'f',
      holds: /^\/(flows|executions|workitems)(\/|$)/,
      icon: 'M3 3.5h4v3H3ZM9 9.5h4v3H9ZM5 6.5V11h4M7 5h4v4.5',
      Note: MyWorkitems,
    },
    {
      to: '/topics',
      label: 'Bus',
      letter: 'b',
      holds: /^\/(topics|subscribers|dead-letters|errands)(\/|$)/,
      icon: 'M2.5 8h3M10.5 4h3M10.5 12h3M5.5 8 10.5 4M5.5 8l5 4',
    },
  ],
  [
    {
      to: '/workers',
      label: 'Workers',
      letter: 'w',
      holds: /^\/workers(\/|$)/,
      icon: 'M2.5 3h11v4h-11ZM2.5 9.5h11v4h-11ZM5 5h.01M5 11.5h.01',
    },
    {
      to: '/schedulers',
      label: 'Schedulers',
      letter: 's',
      holds: /^\/schedulers(\/|$)/,
      icon: 'M8 13.5a5.5 5.5 0 1 0 0-11 5.5 5.5 0 0 0 0 11ZM8 5v3.2l2.2 1.3',
    },
    { to: '/audit', label: 'Audit', letter: 'a', holds: /^\/audit(\/|$)/, icon: 'M4 2.5h8v11H4ZM6 6h4M6 8.5h4M6 11h2' },
    {
      to: '/tenants',
      label: 'Tenants',
      letter: 't',
      holds: /^\/(tenants|slots|engines|launcher)(\/|$)/,
      icon: 'M8 2.5 14 5.5 8 8.5 2 5.5ZM2.5 8.3 8 11l5.5-2.7M2.5 11 8 13.7 13.5 11',
      only: 'root',
    },
    {
      to: '/keys',
      label: 'Keys',
      letter: 'k',
      holds: /^\/keys(\/|$)/,
      icon: 'M5.5 10.5a2.5 2.5 0 1 0 0-.01ZM7.5 8.5 13 3M11 5l2 2',
      only: 'root',
    },
    {
      to: '/settings',
      label: 'Settings',
      letter: ',',
      holds: /^\/settings(\/|$)/,
      icon: 'M2.5 5h7M12.5 5h1M2.5 11h1M6.5 11h7M11 3.5v3M5 9.5v3',
    },
  ],
];

/** The pages that this role may open. */
export function usePlaces(): readonly (readonly Place[])[] {
  const role = useMe().data?.role;
  return places.map((group) => group.filter(({ only }) => only === undefined || only === role));
}

/** On a phone the row of places is longer than the screen. */
function intoView(place: HTMLAnchorElement | null): void {
  place?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
}

export function Navigation() {
  const [path] = useLocation();
  const groups = usePlaces();
  return (
    <nav aria-label="Main" className="places">
      {groups.map((group, index) => (
        // groups never change their order
        <ul key={index}>
          {group.map(({ to, label, holds, icon, Note }) => (
            <li key={to}>
              <Link
                href={to}
                className="place"
                aria-current={holds.test(path) ? 'page' : undefined}
                ref={holds.test(path) ? intoView : undefined}
              >
                <svg className="icon" viewBox="0 0 16 16" aria-hidden="true">
                  <path d={icon} />
                </svg>
                {label}
                {Note === undefined ? null : <Note />}
              </Link>
            </li>
          ))}
        </ul>
      ))}
    </nav>
  );
}
