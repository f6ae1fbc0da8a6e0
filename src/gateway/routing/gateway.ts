/**
 * The gateway: every request passes here. It identifies the caller and the tenant, and dispatches the request to the gateway
 * itself, the tenant's engine, or the web interface. A tenant's routes are reached only through the loader and the engine's
 * `fetch`.
 */
import { defaultTenant } from '../../contract/tenants.ts';
import type { Caller } from '../../contract/roles.ts';
import { isConnectionLoss, MillraceError } from '../../errors.ts';
import type { Telemetry } from '../../kernel/telemetry.ts';
import type { Endpoint, Handler, Handlers } from '../../http/endpoint.ts';
import { makeRouter, problemResponse, toKnownError } from '../../http/router.ts';
import { within } from '../../kernel/service.ts';
import type { TenantRow } from '../../control/queries.ts';
import { unlessGone } from '../../loader/loader.ts';
import { accessHandlers } from '../access/keys.ts';
import { answerTokenIn, openLink, wantsPage, withoutAnswerToken } from '../answers/answer-links.ts';
import { announcedBody, BodyBudget } from './body-budget.ts';
import { groupOf, requireGroup } from './capabilities.ts';
import { rejectOtherTenant } from '../access/callers.ts';
import type { GatewayContext } from '../installation/context.ts';
import { gatewayEndpoints } from '../installation/endpoints.ts';
import { busChallenges } from '../bus/challenges.ts';
import { tokenHandlers, withoutToken } from '../bus/api-tokens.ts';
import { healthHandlers, unavailable } from '../installation/health.ts';
import { installationHandlers } from '../installation/installation.ts';
import { internalHandlers } from '../desks/internal.ts';
import { goesOn } from './open-streams.ts';
import { isBusPath, isMachinePath, isTenantPath } from './paths.ts';
import { refuseForeignOrigin, refuseUnknownHost } from './origin.ts';
import { sessionHandlers } from '../access/sessions.ts';
import { loadStaticFiles, type StaticFiles } from './static-files.ts';
import { requestAnswered } from './telemetry.ts';
import { tenantHandlers } from '../tenants/handlers.ts';

export interface GatewayOptions {
  readonly context: GatewayContext;
  readonly telemetry: Telemetry;
  readonly uiFolder: string;
  readonly hostNames: ReadonlySet<string>;
}

/** A request with the data that every step needs. */
interface Asked {
  readonly request: Request;
  /** The client's address, if it is known. */
  readonly remote: string | null;
  /** Parsed once. */
  readonly url: URL;
}

const healthPaths = /^\/(?:healthz|readyz)$/;
/** Paths that are answered even if the database is slow: `millrace status`, `why` and status pages. */
const promptPaths =
  /^(?:\/t\/[^/]+)?\/(?:healthz|readyz|api\/(?:me|tenants|explain\/tenant|overview|status|workers|schedulers|launcher|slots|installation)(?:\/[^/]*)?)$/;
const answerTimes = {
  /** The minimum wait of a read. A database that is slow, but not frozen, answers within it. */
  patienceMs: 1_000,
  /** The interval at which a waiting read checks whether the database is frozen. */
  lookMs: 250,
  /** The maximum wait of a prompt path, and of the lookup of a key. */
  longestMs: 10_000,
};
const prefix = /^\/t\/([^/]+)(\/.*)?$/;

/**
 * Default headers of every answer: browsers must not guess the content type, embed the answer in a frame, send a referrer, or run
 * or load anything from it. Task output and stash values are answers, too.
 */
export const guards = {
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
};

const handlers: Handlers<typeof gatewayEndpoints, GatewayContext> = {
  ...healthHandlers,
  ...accessHandlers,
  ...sessionHandlers,
  ...internalHandlers,
  ...installationHandlers,
  ...tenantHandlers,
  ...tokenHandlers,
};

/** The calls of workers, by their keys in the table of endpoints. */
const workerHandlers: Readonly<Record<string, Handler<Endpoint, GatewayContext>>> = internalHandlers;
/** A placeholder for calls without a request. */
const withinProcess = new Request('http://in-process');

const route = makeRouter(
  gatewayEndpoints,
  handlers,
  (error, { request, ctx }) => logFault(ctx, error, request),
  (error, { ctx, caller }) => explainLoss(error, ctx, caller),
);

/** Adds the cause and the start of the outage to a lost connection to the control database. */
function explainLoss(error: unknown, { life }: GatewayContext, caller?: Caller): unknown {
  const fault = isConnectionLoss(error) ? life.databaseFault() : undefined;
  return fault === undefined ? error : unavailable(fault, caller);
}

function logFault(context: GatewayContext, error: unknown, request: Request): void {
  const path = withoutAnswerToken(withoutToken(new URL(request.url).pathname));
  context.log.error({ err: error, method: request.method, path }, 'request failed');
}

export class Gateway {
  readonly #options: GatewayOptions;
  readonly bodies = new BodyBudget();
  #files: Promise<StaticFiles> | undefined;

  constructor(options: GatewayOptions) {
    this.#options = options;
  }

  /** Answers a request from outside; `remote` is the client's address. Never rejects. */
  async fetch(request: Request, remote: string | null = null): Promise<Response> {
    const startedAt = performance.now();
    const asked: Asked = { request, remote, url: new URL(request.url) };
    const answer = isRead(request) ? await this.#promptly(asked) : await this.#guarded(asked);
    const { method } = request;
    const response = method === 'HEAD' ? await headOf(answer) : answer;
    if (response.status === 401 && isBusPath(asked.url.pathname))
      response.headers.set('www-authenticate', busChallenges);
    for (const [name, value] of Object.entries(guards))
      if (!response.headers.has(name)) response.headers.set(name, value);
    requestAnswered.emit(this.#options.telemetry, {
      method,
      status: response.status,
      ms: performance.now() - startedAt,
    });
    return response;
  }

  /**
   * Answers the worker in this process. Its messages are neither validated nor serialized, because it is of the same build. Rejects
   * with the error that a remote worker would receive.
   */
  async call(pathname: string, body: unknown, caller: Caller, signal: AbortSignal): Promise<unknown> {
    const handler = workerHandlers[`POST ${pathname}`];
    if (handler === undefined) throw new MillraceError('not_found', `nothing is served at ${pathname}`);
    const input = { params: undefined, query: undefined, body, caller, request: withinProcess, signal };
    const context = { ...this.#options.context, remote: null };
    try {
      return await handler(input, context);
    } catch (error) {
      const explained = explainLoss(error, context, caller);
      throw toKnownError(explained, (fault) => context.log.error({ err: fault, path: pathname }, 'request failed'));
    }
  }

  /** The error that the caller of `POST …/topics/{name}` receives. An unexpected one is logged, without its path. */
  explain(error: unknown, caller: Caller | undefined): MillraceError {
    const { context } = this.#options;
    const log = (fault: unknown): void => context.log.error({ err: fault, method: 'POST' }, 'publishing failed');
    return toKnownError(explainLoss(error, context, caller), log);
  }

  /** The token is the only credential here. */
  async #ofLink({ request, remote }: Asked, token: string): Promise<Response> {
    if (wantsPage(request)) return this.#file(request, '/index.html');
    return openLink(request, token, { context: this.#options.context, bodies: this.bodies, remote });
  }

  /** Gives up once the database is known to be frozen, within 2 s. */
  async #promptly(asked: Asked): Promise<Response> {
    const { patienceMs, lookMs } = answerTimes;
    const longestMs = promptPaths.test(asked.url.pathname) ? answerTimes.longestMs : Number.POSITIVE_INFINITY;
    const startedMs = performance.now();
    const answering = this.#guarded(asked);
    for (;;) {
      const answer = await within(lookMs, answering);
      if (answer !== undefined) return answer;
      const waitedMs = performance.now() - startedMs;
      if (waitedMs > longestMs || (this.#isFrozen() && waitedMs > patienceMs)) {
        void answering.then(discard);
        return problemResponse(this.#unanswered(waitedMs), () => {});
      }
    }
  }

  #isFrozen(): boolean {
    return this.#options.context.life.databaseFault()?.kind === 'silent';
  }

  #unanswered(waitedMs: number): MillraceError {
    const fault = this.#options.context.life.databaseFault();
    const summary = fault?.summary ?? `the database has not answered within ${Math.round(waitedMs / 1_000)} s`;
    return new MillraceError('database_unavailable', summary);
  }

  async #guarded(asked: Asked): Promise<Response> {
    const { request } = asked;
    let caller: Caller | undefined;
    try {
      refuseUnknownHost(request, this.#options.hostNames);
      const token = answerTokenIn(asked.url.pathname);
      if (token !== undefined) return await this.#ofLink(asked, token);
      const { callers, streams } = this.#options.context;
      caller = await this.#identify(asked);
      refuseForeignOrigin(request, caller);
      const answer = await this.#answerWithin(asked, caller);
      const hash = goesOn(answer) ? callers.hashFor(request, caller) : undefined;
      return hash === undefined ? answer : streams.keep(answer, hash);
    } catch (error) {
      const explained = explainLoss(error, this.#options.context, caller);
      return problemResponse(explained, (fault) => logFault(this.#options.context, fault, request));
    }
  }

  /** Pages need no caller. A failed lookup of a key does not mean that the key is unknown. */
  async #identify({ request, remote, url }: Asked): Promise<Caller | undefined> {
    const { callers, rejectedCredentials } = this.#options.context;
    const { path } = targetOf(url.pathname);
    if (isRead(request) && !isMachinePath(path)) return undefined;
    if (healthPaths.test(path) && this.#isFrozen()) return undefined;
    try {
      const identified = callers.identify(request).then((caller) => ({ caller }));
      const found = await within(answerTimes.longestMs, identified);
      if (found === undefined) throw this.#unanswered(answerTimes.longestMs);
      return found.caller;
    } catch (error) {
      if (error instanceof MillraceError && error.code === 'unauthenticated')
        rejectedCredentials.note('header', remote);
      // health needs no key
      if (healthPaths.test(path) && isConnectionLoss(error)) return undefined;
      throw error;
    }
  }

  /**
   * Public endpoints accept 4 KiB and need no budget, whether the sender has a key or not. Otherwise bodies of unknown length, which
   * count as long ones, would use up a tenant's share, and its documents would be rejected.
   */
  async #answerWithin(asked: Asked, caller: Caller | undefined): Promise<Response> {
    if (caller === undefined || isForAnybody(asked)) return this.#answer(asked, caller);
    const giveBack = this.bodies.take(announcedBody(asked.request), caller);
    try {
      return await this.#answer(asked, caller);
    } finally {
      giveBack();
    }
  }

  async #answer({ request, remote, url }: Asked, caller: Caller | undefined): Promise<Response> {
    const { pathname } = url;
    const target = targetOf(pathname);
    const isOfTenant = target.prefixed && isMachinePath(target.path);
    const admitted = isOfTenant && caller !== undefined ? await this.#admit(target.tenant, caller) : undefined;
    const innerUrl = target.path === pathname ? url : withPath(url, target.path);
    const inner = innerUrl === url ? request : requestAt(innerUrl, request);
    const own = await route(inner, { ...this.#options.context, remote, tenant: target.tenant }, caller, innerUrl);
    if (own !== undefined) return own;
    if (isTenantPath(target.path)) return this.#ofTenant(inner, { ...target, admitted }, caller);
    return this.#page(request, pathname, target);
  }

  /** Below a tenant's prefix, keys of other tenants are rejected, and so are names of tenants that do not exist. */
  async #admit(name: string, caller: Caller | undefined): Promise<TenantRow> {
    const { loader } = this.#options.context;
    // a task uses the name that its tenant had when the task began
    const finding = caller?.kind === 'task' ? loader.findAlways(name) : loader.find(name);
    const row = await finding.catch(unlessGone);
    rejectOtherTenant(caller, { id: row?.id, name });
    return row ?? finding;
  }

  /** Passes the request to the admitted tenant, even if another tenant has its name by now. */
  async #ofTenant(request: Request, target: AdmittedTarget, caller: Caller | undefined): Promise<Response> {
    const { tenant, path, admitted } = target;
    if (caller === undefined && tenant !== defaultTenant)
      throw new MillraceError('unauthenticated', 'send a key of this tenant');
    const { loader } = this.#options.context;
    const row = admitted ?? (await this.#admit(tenant, caller));
    const group = groupOf(path);
    if (group !== undefined) requireGroup((await loader.open(row)).engine, group, row.name);
    return loader.fetch(row, request, caller);
  }

  async #page(request: Request, pathname: string, target: Target): Promise<Response> {
    const page = target.prefixed && !isMachinePath(target.path);
    if (isMachinePath(pathname) && !page) throw new MillraceError('not_found', `nothing is served at ${pathname}`);
    if (!isRead(request)) throw new MillraceError('method_not_allowed', 'a page can only be read');
    return this.#file(request, target.path);
  }

  async #file(request: Request, path: string): Promise<Response> {
    const answer = (await this.#loadFiles())(path);
    if (answer !== undefined) return answer(request);
    throw new MillraceError('not_found', `there is no page at ${path}`);
  }

  /** If the folder cannot be read, the next request tries again. */
  #loadFiles(): Promise<StaticFiles> {
    this.#files ??= loadStaticFiles(this.#options.uiFolder).catch((error: unknown) => {
      this.#files = undefined;
      throw error;
    });
    return this.#files;
  }
}

/** The answer without its body, which may be endless and would not be read. */
async function headOf(answer: Response): Promise<Response> {
  await answer.body?.cancel();
  return new Response(null, { status: answer.status, headers: answer.headers });
}

const endpointsForAnybody: ReadonlySet<string> = new Set(
  Object.entries(gatewayEndpoints).flatMap(([key, { allow }]) =>
    (allow as readonly string[]).includes('anyone') ? [key] : [],
  ),
);

function isForAnybody({ request, url }: Asked): boolean {
  return endpointsForAnybody.has(`${request.method} ${targetOf(url.pathname).path}`);
}

/** Cancels an answer that comes too late. A stream is endless, and counts against the limit of its key. */
async function discard({ body }: Response): Promise<void> {
  await body?.cancel().catch(() => {});
}

function isRead({ method }: Request): boolean {
  return method === 'GET' || method === 'HEAD';
}

interface Target {
  readonly tenant: string;
  readonly path: string;
  readonly prefixed: boolean;
}

interface AdmittedTarget extends Target {
  /** The tenant, if the caller was checked against it already. */
  readonly admitted: TenantRow | undefined;
}

function targetOf(pathname: string): Target {
  const match = prefix.exec(pathname);
  if (match === null) return { tenant: defaultTenant, path: pathname, prefixed: false };
  try {
    return { tenant: decodeURIComponent(match[1] ?? ''), path: match[2] ?? '/', prefixed: true };
  } catch {
    throw new MillraceError('bad_request', 'the path is not valid percent-encoding');
  }
}

function withPath(url: URL, path: string): URL {
  const other = new URL(url);
  other.pathname = path;
  return other;
}

/** The same request for another URL: without the tenant's prefix. */
function requestAt(url: URL, request: Request): Request {
  return new Request(url, {
    method: request.method,
    headers: request.headers,
    signal: request.signal,
    ...(isRead(request) ? {} : { body: request.body, duplex: 'half' }),
  });
}
