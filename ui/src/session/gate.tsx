/** Admits signed-in users; sends all others to the sign-in page, which then returns them to the requested page. */
import { type ReactNode, useEffect } from 'react';
import { Redirect, useLocation, useSearch } from 'wouter';
import { statusOf } from '../client.ts';
import { Failure } from '../kit/failure.tsx';
import { Loading } from '../kit/loading.tsx';
import { noteSession, useMe } from './session.ts';

export function Gate({ children }: { readonly children: ReactNode }) {
  const me = useMe();
  const [path] = useLocation();
  const search = useSearch();
  const isSignedOut = statusOf(me.error) === 401;
  const isSignedIn = me.data !== undefined;
  useEffect(() => {
    if (isSignedOut || isSignedIn) noteSession(isSignedIn);
  }, [isSignedOut, isSignedIn]);
  if (isSignedOut) {
    const here = (search === '' ? path : `${path}?${search}`) + location.hash;
    return <Redirect to={here === '/' ? '/signin' : `/signin?next=${encodeURIComponent(here)}`} replace />;
  }
  if (me.data !== undefined) return children;
  if (me.error === null) return <Loading what="Opening millrace" />;
  return (
    <main className="lone">
      <Failure error={me.error} retry={me.refetch} />
    </main>
  );
}
