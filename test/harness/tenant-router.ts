/** Calls of a tenant's API in this process: requests go through the router, with any caller that a test chooses. */
import { applyHandlers } from '../../src/api/jobs/apply.ts';
import type { ApiContext } from '../../src/api/context.ts';
import { type TenantEndpoints, tenantEndpoints } from '../../src/api/endpoints.ts';
import { apiHandlers } from '../../src/api/handlers.ts';
import type { Caller, Role } from '../../src/contract/roles.ts';
import { type Client, makeClient } from '../../src/http/client.ts';
import { makeRouter } from '../../src/http/router.ts';
import { newId } from '../../src/kernel/id.ts';

export interface TenantCalls {
  /** Calls as an operator. */
  readonly call: Client<TenantEndpoints>;
  /** A client for another caller. */
  as(caller: Caller | undefined): Client<TenantEndpoints>;
  /** Sends a plain request that no typed client would send. */
  fetch(method: string, path: string, options?: FetchOptions): Promise<Response>;
  send(request: Request, caller: Caller | undefined): Promise<Response>;
}

interface FetchOptions {
  readonly caller?: Caller;
  readonly body?: string;
  readonly headers?: Record<string, string>;
}

/** Every test uses this tenant id; each has its own database. */
export const tenantId = newId();

export function keyOf(role: Role): Caller {
  const identity = { id: newId(), name: role };
  return { kind: 'key', role, identity, tenantId, tenant: 'default', actor: `key:${role}` };
}

export function taskOf(run: string, lease = 1): Caller {
  return { kind: 'task', tenantId, run, lease };
}

export function makeTenantCalls(ctx: ApiContext): TenantCalls {
  const faults: unknown[] = [];
  const route = makeRouter<TenantEndpoints, ApiContext>(
    tenantEndpoints,
    { ...apiHandlers, ...applyHandlers },
    (error) => faults.push(error),
  );
  async function send(request: Request, caller: Caller | undefined): Promise<Response> {
    const answer = await route(request, ctx, caller);
    // throw an internal error where it happened, rather than as a wrong status
    if (faults.length > 0) throw faults.pop();
    return answer ?? new Response('no such path', { status: 404 });
  }
  const base = 'http://tenant';
  const as = (caller: Caller | undefined): Client<TenantEndpoints> =>
    makeClient<TenantEndpoints>({ base, fetch: (request) => send(request, caller) });
  return {
    as,
    send,
    call: as(keyOf('operator')),
    fetch: (method, path, { caller, body, headers } = {}) =>
      send(
        new Request(base + path, {
          method,
          ...(body === undefined ? {} : { body }),
          headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
        }),
        caller,
      ),
  };
}
