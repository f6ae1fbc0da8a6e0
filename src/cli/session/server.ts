/**
 * The connection of a command to the server: typed clients for the endpoints of a tenant and of the gateway, and streams.
 *
 * Streams use node:http, because `fetch` aborts a body that is silent for five minutes, and a task may be silent for longer.
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
  /** Sends a GET to the tenant's API and returns the response as a stream. */
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
        throw toUnreachable(error, url, signal);
      });
    },
  };
}

async function sendRequest(request: Request, url: string, signal: AbortSignal): Promise<Response> {
  try {
    const response = await fetch(request, { signal });
    if (response.ok && isPage(response))
      throw new MillraceError('unreachable', `the server at ${url} is not Millrace; check --url and MILLRACE_URL`);
    return response;
  } catch (error) {
    throw toUnreachable(error, url, signal);
  }
}

function isPage(response: Response): boolean {
  return (response.headers.get('content-type') ?? '').startsWith('text/html');
}

/** Turns an error of the connection into `unreachable`, and returns any other error unchanged. */
function toUnreachable(error: unknown, url: string, signal: AbortSignal): unknown {
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
  throw await readFailure(status, response);
}

async function readFailure(status: number, response: IncomingMessage): Promise<CallFailed> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of response as AsyncIterable<Uint8Array>) chunks.push(chunk);
  const text = Buffer.concat(chunks).toString('utf8');
  try {
    return new CallFailed(status, JSON.parse(text) as Problem, text);
  } catch {
    return new CallFailed(status, undefined, text || (response.statusMessage ?? ''));
  }
}
