/** Ends the session here and on the server. */
import { useLocation } from 'wouter';
import { useSignOut } from './session.ts';

export function SignOut() {
  const [, navigate] = useLocation();
  const signOut = useSignOut(() => navigate('/signin'));
  return (
    <button type="button" className="sign-out" disabled={signOut.isPending} onClick={() => signOut.mutate()}>
      {signOut.isError ? 'Sign out: try again' : 'Sign out'}
    </button>
  );
}
