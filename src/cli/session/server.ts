/**
 * The server as commands see it: the typed client for a tenant's endpoints and for the gateway's own, and streams.
 *
 * Streams go over node:http, because `fetch` gives up on a body that is silent for five minutes, as a task may well be.
 */
import { defaultTenant } from '../../contract/tenants.ts';
import { type IncomingMessage, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import type { TenantEndpoints } from '../../api/endpoints.ts';
import { MillraceError, type Problem } from '../../errors.ts';
import type { GatewayEndpoints } from '../../gateway/installation/endpoints.ts';
import { CallFailed, type Client, makeClient } from '../../http/client.ts';
import { type Connection, whatToDo } from './connection.ts';

export interface Server {
  readonly url: string;
  readonly tenantName: string;
  readonly tenant: Client<TenantEndpoints>;
  readonly gateway: Client<GatewayEndpoints>;
  /** A tenant's GET whose answer comes bit by bit. */
  stream(path: string, options?: StreamOptions): Promise<IncomingMessage>;
}

interface StreamOptions {
  readonly query?: Readonly<Record<string, string | undefined>>;
  readonly headers?: Readonly<Record<string, string>>;
}

const keepAliveMs = 15_000;

export function makeServer(connection: Connection, tenant: string, signal: AbortSignal): Server {
  const { url, key } = connection;
  const base = tenant === defaultTenant ? url : `${url}/t/${encodeURIComponent(tenant)}`;
  const headers: Record<string, string> = key === undefined ? {} : { authorization: `Bearer ${key}` };
  const send = (request: Request): Promise<Response> => sendRequest(request, url, signal);
  return {
    url,
    tenantName: tenant,
    tenant: makeClient<TenantEndpoints>({ base, headers, fetch: send }),
    gateway: makeClient<GatewayEndpoints>({ base: url, headers, fetch: send }),
    async stream(path, options = {}) {
      const target = new URL(`${base}${path}`);
      for (const [name, value] of Object.entries(options.query ?? {})) {
        if (value !== undefined) target.searchParams.set(name, value);
      }
      return openStream(target, { ...headers, ...options.headers }, signal).catch((error: unknown) => {
        throw unreachable(error, url, signal);
      });
    },
  };
}

async function sendRequest(request: Request, url: string, signal: AbortSignal): Promise<Response> {
  try {
    const response = await fetch(request, { signal });
    if (response.ok && isPage(response))
      throw new MillraceError('unreachable', `what answers at ${url} is not Millrace`);
    return response;
  } catch (error) {
    throw unreachable(error, url, signal);
  }
}

function isPage(response: Response): boolean {
  return (response.headers.get('content-type') ?? '').startsWith('text/html');
}

/** What says that nobody answered; anything else as it is. */
function unreachable(error: unknown, url: string, signal: AbortSignal): unknown {
  if (signal.aborted || error instanceof MillraceError || error instanceof CallFailed) return error;
  if (!(error instanceof Error)) return error;
  const cause = error.cause instanceof Error ? error.cause : error;
  const code: unknown = Reflect.get(cause, 'code');
  const reason = typeof code === 'string' ? code : cause.message;
  return new MillraceError('unreachable', `no server answers at ${url} (${reason}); ${whatToDo}`, { cause: error });
}

async function openStream(target: URL, headers: Record<string, string>, signal: AbortSignal): Promise<IncomingMessage> {
  const request = target.protocol === 'https:' ? requestHttps : requestHttp;
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const sent = request(target, { headers, signal, agent: false }, resolve);
    sent.on('socket', (socket) => socket.setKeepAlive(true, keepAliveMs));
    sent.on('error', reject);
    sent.end();
  });
  const status = response.statusCode ?? 0;
  if (status >= 200 && status < 300) return response;
  throw await failure(status, response);
}

async function failure(status: number, response: IncomingMessage): Promise<CallFailed> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of response as AsyncIterable<Uint8Array>) chunks.push(chunk);
  const text = Buffer.concat(chunks).toString('utf8');
  try {
    return new CallFailed(status, JSON.parse(text) as Problem, text);
  } catch {
    return new CallFailed(status, undefined, text || (response.statusMessage ?? ''));
  }
}
