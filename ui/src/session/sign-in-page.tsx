/**
 * The sign-in page. The one-time link carries its secret in the fragment, which no server or prefetch sees: a script
 * takes it out of the address bar and spends it by a POST. Without a link, or with a spent one, a key will do.
 */
import { useQueryClient } from '@tanstack/react-query';
import { useEffect } from 'react';
import { useLocation, useSearchParams } from 'wouter';
import { homeOf, tenantBase } from '../client.ts';
import { keys } from '../queries.ts';
import { Wordmark } from '../shell/wordmark.tsx';
import { KeyForm } from './key-form.tsx';
import { hintsAtSession, useSignIn } from './session.ts';
import './sign-in.css';
import { SignInFailure } from './sign-in-failure.tsx';

/** A place inside this site; anything else becomes the first page. */
function inside(next: string | null): string {
  return next !== null && /^\/(?![/\\\s])/.test(next) ? next : '/';
}

function takeLink(): string {
  const link = location.hash.slice(1);
  if (link !== '') history.replaceState(history.state, '', location.pathname + location.search);
  return link;
}

export function SignInPage() {
  const [, navigate] = useLocation();
  const [search] = useSearchParams();
  const client = useQueryClient();
  const signIn = useSignIn((me) => {
    const home = homeOf(me.tenant);
    // a key of another tenant opens that tenant's pages, which are another app as far as addresses go
    if (me.tenant !== null && home !== `${tenantBase}/`) location.assign(home);
    else navigate(inside(search.get('next')), { replace: true });
  });
  const { mutate } = signIn;

  useEffect(() => {
    // another tab has signed in, meanwhile or before: then there is nothing to ask
    const look = () => {
      if (!hintsAtSession() || location.hash !== '') return;
      // that it was refused before is no longer known
      client.removeQueries({ queryKey: keys.me });
      navigate(inside(search.get('next')), { replace: true });
    };
    look();
    addEventListener('storage', look);
    return () => removeEventListener('storage', look);
  }, [client, navigate, search]);

  useEffect(() => {
    const spend = () => {
      const link = takeLink();
      if (link !== '') mutate({ link });
    };
    spend();
    addEventListener('hashchange', spend);
    return () => removeEventListener('hashchange', spend);
  }, [mutate]);

  const byLink = signIn.variables !== undefined && 'link' in signIn.variables;
  return (
    <main className="sign-in">
      <div className="sign-in-card">
        <h1>
          <Wordmark />
        </h1>
        {byLink && signIn.isPending ? (
          <p className="muted" role="status">
            Signing in with your link…
          </p>
        ) : (
          <>
            <SignInFailure error={signIn.error} byLink={byLink} />
            <KeyForm busy={signIn.isPending} submit={(key) => mutate({ key })} />
          </>
        )}
      </div>
    </main>
  );
}
