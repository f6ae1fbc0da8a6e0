/** The places of the house, as a table: bus, flows and tenants will be rows here when they have pages. */
import { Link, useLocation } from 'wouter';

const places = [
  { to: '/jobs', label: 'Jobs', holds: /^\/(jobs|runs)(\/|$)/, icon: 'M3 4h10M3 8h10M3 12h6' },
  { to: '/events', label: 'Events', holds: /^\/events(\/|$)/, icon: 'M1.5 8.5h3l2-5 3 9 2-4h3' },
] as const;

export function Navigation() {
  const [path] = useLocation();
  return (
    <nav aria-label="Main" className="places">
      <ul>
        {places.map(({ to, label, holds, icon }) => (
          <li key={to}>
            <Link href={to} className="place" aria-current={holds.test(path) ? 'page' : undefined}>
              <svg className="icon" viewBox="0 0 16 16" aria-hidden="true">
                <path d={icon} />
              </svg>
              {label}
            </Link>
          </li>
        ))}
      </ul>
    </nav>
  );
}
