/**
 * Across the top of a tenant's pages while its scheduler does not run: why, and for root the way to change that. Where the
 * tenant cannot be read at all, or does not exist, that is said instead of guessing that the server is away.
 */
import type { ReactNode } from 'react';
import { Link, useLocation } from 'wouter';
import { tenantName } from '../client.ts';
import { LostBanner } from '../live/lost-banner.tsx';
import { useIsRoot } from '../session/root-only.tsx';
import { useAccess } from '../tenants/access.tsx';
import { isClosed, sentenceWords, toneOf } from '../tenants/standing.ts';
import { StartButton } from '../tenants/start-button.tsx';
import type { TenantWhy } from '../tenants/use-tenants.ts';

/** Pages about the installation, which say it themselves or do not depend on it. */
const ofInstallation = /^\/(tenants|slots|engines|launcher|keys)(\/|$)/;

export function Banners() {
  const { state, why, fault } = useAccess();
  const [path] = useLocation();
  if (state === 'missing') return <NoTenant />;
  if (fault !== undefined) return <NoDatabase fault={fault} />;
  const isShown = why !== undefined && isWorthSaying(why) && !ofInstallation.test(path);
  return (
    <>
      {state === 'closed' ? null : <LostBanner />}
      {isShown ? <Stopped why={why} /> : null}
    </>
  );
}

/** A tenant that does not exist has no pages: only the banner is shown. */
export function Existing({ children }: { readonly children: ReactNode }) {
  const { state } = useAccess();
  const [path] = useLocation();
  return state === 'missing' && !ofInstallation.test(path) && path !== '/settings' ? null : children;
}

/** A start or stop that is under way is over in a moment. */
function isWorthSaying(why: TenantWhy): boolean {
  const tone = toneOf(why);
  return tone !== 'well' && tone !== 'busy';
}

function Stopped({ why }: { readonly why: TenantWhy }) {
  const isRoot = useIsRoot();
  return (
    <div className="tenant-banner" data-tone={toneOf(why)} role="status">
      <p>
        {sentenceWords(why.sentence)}{' '}
        {isClosed(why.reason_code) ? 'Until then there is nothing to see of it.' : 'Meanwhile nothing fires.'}{' '}
        {isRoot ? <Link href={`/tenants/${encodeURIComponent(tenantName)}`}>More about it</Link> : null}
      </p>
      {isRoot && why.reason_code === 'stopped_by_user' ? <StartButton name={tenantName} /> : null}
    </div>
  );
}

function NoDatabase({ fault }: { readonly fault: string }) {
  return (
    <p className="lost-banner" role="alert">
      {sentenceWords(fault)}. This page may be out of date. It updates by itself when the database answers.
    </p>
  );
}

function NoTenant() {
  return (
    <p className="lost-banner" role="alert">
      There is no tenant {tenantName}. It may have been renamed or dropped; <a href="/">the tenant default</a> is always
      there.
    </p>
  );
}
