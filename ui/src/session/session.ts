/**
 * The signed-in user. The session itself is a cookie that scripts cannot read; this file only knows the answer of `/api/me`.
 */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { type GatewayAnswer, gateway, isDatabaseFault } from '../client.ts';
import { keys } from '../queries.ts';

type Me = GatewayAnswer<'GET /api/me'>;

/** Notes for other tabs that a user is signed in. A request without a session would log an error on the console. */
const hint = 'millrace signed in';

export function hintsAtSession(): boolean {
  return localStorage.getItem(hint) !== null;
}

export function noteSession(isThere: boolean): void {
  if (isThere) localStorage.setItem(hint, 'yes');
  else localStorage.removeItem(hint);
}

/** Polling interval while the database does not answer. */
const faultyMs = 3_000;

export function useMe() {
  return useQuery<Me>({
    queryKey: keys.me,
    queryFn: ({ signal }) => gateway('GET /api/me', { signal }),
    staleTime: Number.POSITIVE_INFINITY,
    refetchInterval: ({ state: { error } }) => (isDatabaseFault(error) ? faultyMs : false),
  });
}

/** Whether this role may change things; what it may not do is not offered. The server decides, this only hides. */
export function useMayOperate(): boolean {
  const role = useMe().data?.role;
  return role === 'root' || role === 'operator';
}

type Credential = { readonly link: string } | { readonly key: string };

const spending = new Map<string, Promise<Me>>();

/** A link is valid for one POST, so a second request for the same link gets the answer of the first. */
function exchange(credential: Credential): Promise<Me> {
  if ('key' in credential) return gateway('POST /api/session', { body: credential });
  const known = spending.get(credential.link);
  if (known !== undefined) return known;
  const first = gateway('POST /api/session', { body: credential });
  spending.set(credential.link, first);
  return first;
}

export function useSignIn(onSignedIn: (me: Me) => void) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: exchange,
    onSuccess: (me) => {
      client.clear();
      client.setQueryData(keys.me, me);
      noteSession(true);
      onSignedIn(me);
    },
  });
}

export function useSignOut(onSignedOut: () => void) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: () => gateway('DELETE /api/session'),
    onSuccess: () => {
      noteSession(false);
      onSignedOut();
      client.clear();
    },
  });
}
