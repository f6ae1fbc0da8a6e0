/**
 * The bus at the root of a listener of its own, as Routemaster serves it. The key determines the tenant: a request is answered as
 * if it had been sent to that tenant's `/bus` path.
 */
import { defaultTenant } from '../../contract/tenants.ts';
import { MillraceError } from '../../errors.ts';
import { problemResponse } from '../../http/router.ts';
import type { GatewayContext } from '../installation/context.ts';
import type { Gateway } from '../routing/gateway.ts';
import { busChallenges } from './challenges.ts';

type BusFetch = (request: Request, remote: string | null) => Promise<Response>;

const healthPath = /^\/health(\/ping(\.json)?)?$/;

export function makeBusFetch(gateway: Gateway, { callers, loader, time, log }: GatewayContext): BusFetch {
  const tenantOf = async (request: Request): Promise<string> => {
    const authorization = request.headers.get('authorization');
    if (authorization === null) throw new MillraceError('unauthenticated', 'send a key');
    const { tenantId } = await callers.byAuthorization(authorization);
    return tenantId === null ? defaultTenant : (await loader.byId(tenantId)).name;
  };
  return async (request, remote) => {
    const url = new URL(request.url);
    // load balancers have no key
    if (request.method === 'GET' && healthPath.test(url.pathname))
      return Response.json(url.pathname === '/health' ? {} : { pong: new Date(time.now()).toISOString() });
    try {
      url.pathname = `/t/${encodeURIComponent(await tenantOf(request))}/bus${url.pathname}`;
    } catch (error) {
      return refuse(error, (fault) => log.error({ err: fault, method: request.method }, 'request failed'));
    }
    return gateway.fetch(requestAt(url, request), remote);
  };
}

function refuse(error: unknown, onFault: (error: unknown) => void): Response {
  const response = problemResponse(error, onFault);
  if (response.status === 401) response.headers.set('www-authenticate', busChallenges);
  return response;
}

function requestAt(url: URL, request: Request): Request {
  const { method, headers, signal } = request;
  const hasBody = method !== 'GET' && method !== 'HEAD';
  return new Request(url, { method, headers, signal, ...(hasBody ? { body: request.body, duplex: 'half' } : {}) });
}
