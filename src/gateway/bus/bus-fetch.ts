/**
 * The bus at the root of a listener of its own, as Routemaster serves it. The key determines the tenant: a request is answered as
 * if it had been sent to that tenant's `/bus` path.
 *
 * A request without a valid key goes to the gateway as well, which refuses it and records that.
 */
import { defaultTenant } from '../../contract/tenants.ts';
import { MillraceError } from '../../errors.ts';
import { problemResponse } from '../../http/router.ts';
import { within } from '../../kernel/service.ts';
import type { GatewayContext } from '../installation/context.ts';
import { type Gateway, guards } from '../routing/gateway.ts';

type BusFetch = (request: Request, remote: string | null) => Promise<Response>;

const healthPath = /^\/health(\/ping(\.json)?)?$/;
/** How long finding the tenant of a key may take. */
const findMs = 1_500;

export function makeBusFetch(gateway: Gateway, { callers, loader, time, log }: GatewayContext): BusFetch {
  const tenantOf = async (request: Request): Promise<string> => {
    const authorization = request.headers.get('authorization');
    if (authorization === null) return defaultTenant;
    try {
      const { tenantId } = await callers.byAuthorization(authorization);
      return tenantId === null ? defaultTenant : (await loader.byId(tenantId)).name;
    } catch (error) {
      if (error instanceof MillraceError && error.code === 'unauthenticated') return defaultTenant;
      throw error;
    }
  };
  return async (request, remote) => {
    const url = new URL(request.url);
    // load balancers have no key, and some ask by HEAD
    if (['GET', 'HEAD'].includes(request.method) && healthPath.test(url.pathname))
      return guarded(Response.json(url.pathname === '/health' ? {} : { pong: new Date(time.now()).toISOString() }));
    try {
      const tenant = await within(findMs, tenantOf(request));
      if (tenant === undefined) throw new MillraceError('database_unavailable', 'the database does not answer');
      url.pathname = `/t/${encodeURIComponent(tenant)}/bus${url.pathname}`;
    } catch (error) {
      const onFault = (fault: unknown): void => log.error({ err: fault, method: request.method }, 'request failed');
      return guarded(problemResponse(error, onFault));
    }
    return gateway.fetch(requestAt(url, request), remote);
  };
}

function guarded(response: Response): Response {
  for (const [name, value] of Object.entries(guards)) response.headers.set(name, value);
  return response;
}

function requestAt(url: URL, request: Request): Request {
  const { method, headers, signal } = request;
  const hasBody = method !== 'GET' && method !== 'HEAD';
  return new Request(url, { method, headers, signal, ...(hasBody ? { body: request.body, duplex: 'half' } : {}) });
}
