/** Serves a table of endpoints: finds the entry, authorizes the caller, parses, calls the handler, turns errors into problems. */
import type { Caller } from '../contract/roles.ts';
import { databaseTrouble, isStaleEngine, knownError, MillraceError } from '../errors.ts';
import { parsePart, readBody } from './body.ts';
import type { Access, Endpoint, EndpointKey, EndpointTable, Handler, Handlers } from './endpoint.ts';
import { makeMatcher } from './matcher.ts';

/** Answers a request. Returns `undefined` if no entry of the table has that path. `url`: the request's URL, if already parsed. */
export type Router<Context> = (
  request: Request,
  context: Context,
  caller: Caller | undefined,
  url?: URL,
) => Promise<Response | undefined>;

export function makeRouter<T extends EndpointTable, Context>(
  table: T,
  handlers: Handlers<T, Context>,
  onFault: (error: unknown, where: { request: Request; ctx: Context }) => void,
  /** May replace an error by one that tells the caller more. */
  explain: (error: unknown, where: { ctx: Context; caller: Caller | undefined }) => unknown = (error) => error,
): Router<Context> {
  const match = makeMatcher(Object.keys(table) as EndpointKey[]);
  const untyped = handlers as Readonly<Record<EndpointKey, Handler<Endpoint, Context>>>;
  return async (request, context, caller, url = new URL(request.url)) => {
    try {
      const found = match(request.method, url.pathname);
      const endpoint = found && table[found.key];
      const handler = found && untyped[found.key];
      if (!endpoint || !handler) return undefined;
      return await answer(endpoint, handler, { request, url, params: found.params, caller }, context);
    } catch (error) {
      const explained = explain(error, { ctx: context, caller });
      return problemResponse(explained, (fault) => onFault(fault, { request, ctx: context }));
    }
  };
}

interface Found {
  readonly request: Request;
  readonly url: URL;
  readonly params: Record<string, string>;
  readonly caller: Caller | undefined;
}

async function answer<Context>(
  endpoint: Endpoint,
  handler: Handler<Endpoint, Context>,
  found: Found,
  context: Context,
): Promise<Response> {
  authorize(endpoint.allow, found.caller);
  const { request, url, caller } = found;
  const input = {
    params: endpoint.params && parsePart(endpoint.params, found.params, 'path'),
    query: endpoint.query && parsePart(endpoint.query, Object.fromEntries(url.searchParams), 'query'),
    body: await readBody(request, endpoint),
    caller,
    request,
    signal: request.signal,
  };
  return respond(endpoint, await handler(input as never, context));
}

function respond(endpoint: Endpoint, result: unknown): Response {
  if (result instanceof Response) return result;
  const status = endpoint.status ?? 200;
  if (endpoint.answer === 'none') return new Response(null, { status });
  if (endpoint.answer === 'text')
    return new Response(String(result), { status, headers: { 'content-type': 'text/plain; charset=utf-8' } });
  return Response.json(result, { status });
}

/** 401 without a caller, 403 with the wrong one. */
function authorize(allow: Access, caller: Caller | undefined): void {
  if (allow.includes('anyone')) return;
  if (caller === undefined) throw new MillraceError('unauthenticated', 'send a key as a Bearer token, or sign in');
  const name = caller.kind === 'task' ? 'task' : caller.role;
  if (name === 'root' || allow.includes(name)) return;
  throw new MillraceError(
    'forbidden',
    `the role ${name} may not do this; one of ${[...new Set(['root', ...allow])].join(', ')} may`,
  );
}

/** Converts any error to the one that the caller receives. An unexpected error goes to `onFault`; the caller sees no details. */
export function toKnownError(error: unknown, onFault: (error: unknown) => void): MillraceError {
  const foreseen = knownError(error) ?? staleError(error);
  const known = foreseen ?? translate(error);
  // a MillraceError was thrown on purpose and already says everything
  if (known.status >= 500 && foreseen === undefined) onFault(error);
  return known;
}

export function problemResponse(error: unknown, onFault: (error: unknown) => void): Response {
  const known = toKnownError(error, onFault);
  const headers = new Headers({ 'content-type': 'application/problem+json', ...known.headers });
  if (known.code === 'unauthenticated') headers.set('www-authenticate', 'Bearer realm="millrace"');
  if (known.status === 503) headers.set('retry-after', '1');
  return new Response(JSON.stringify(known.problem()), { status: known.status, headers });
}

function staleError(error: unknown): MillraceError | undefined {
  if (!isStaleEngine(error)) return undefined;
  return new MillraceError('tenant_unavailable', 'the tenant is being upgraded; try again', { cause: error });
}

function translate(error: unknown): MillraceError {
  const trouble = databaseTrouble(error);
  if (trouble !== undefined)
    return new MillraceError('database_unavailable', `${trouble}; try again later`, { cause: error });
  return new MillraceError('internal', 'internal error; the server log has the details', { cause: error });
}
