/** Guards against malicious pages: host names must be known (against DNS rebinding), and writes must come from our own pages. */
import { isIP } from 'node:net';
import type { Caller } from '../../contract/roles.ts';
import { MillraceError } from '../../errors.ts';

const loopbackNames = new Set(['localhost', 'ip6-localhost']);

/** Addresses are always accepted, because they cannot be rebound. A name must be one of ours. */
export function knownHost(host: string | null, ours: ReadonlySet<string>): boolean {
  if (host === null) return false;
  const name = host.replace(/:\d+$/, '').replaceAll(/[[\]]/g, '').toLowerCase();
  return isIP(name) !== 0 || loopbackNames.has(name) || ours.has(name);
}

export function refuseUnknownHost(request: Request, ours: ReadonlySet<string>): void {
  if (request.headers.has('authorization') || knownHost(request.headers.get('host'), ours)) return;
  throw new MillraceError('unknown_host', 'add this host name to MILLRACE_ALLOWED_HOSTS, or send a key');
}

const safe = new Set(['GET', 'HEAD', 'OPTIONS']);

/** A write that is authenticated by a cookie, or that would set one, must come from a page of the same origin. */
export function refuseForeignOrigin(request: Request, caller: Caller | undefined): void {
  if (safe.has(request.method) || (caller !== undefined && caller.kind !== 'session')) return;
  const origin = request.headers.get('origin');
  if (origin === null && caller === undefined) return;
  if (isOwnOrigin(origin, request.headers.get('host'))) return;
  throw new MillraceError('forbidden', 'this write comes from a page of another origin');
}

/** A page on another port counts as the same site and sends our cookie; only its origin differs. */
export function isOwnOrigin(origin: string | null, host: string | null): boolean {
  return origin !== null && URL.canParse(origin) && new URL(origin).host === host;
}
