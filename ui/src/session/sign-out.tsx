/** Ends the session here and on the server. */
import { useLocation } from 'wouter';
import { useFeed } from '../live/live.tsx';
import { useSignOut } from './session.ts';

export function SignOut() {
  const [, navigate] = useLocation();
  const feed = useFeed();
  const signOut = useSignOut(() => {
    // other tabs share the stream, and learn by it that the session is over
    feed.again();
    navigate('/signin');
  });
  return (
    <button type="button" className="plain-button" disabled={signOut.isPending} onClick={() => signOut.mutate()}>
      {signOut.isError ? 'Sign out: try again' : 'Sign out'}
    </button>
  );
}
