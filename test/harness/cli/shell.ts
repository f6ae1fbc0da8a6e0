/**
 * For the tests of this folder only: a shell that runs command lines, and a local HTTP server that speaks the real
 * endpoint tables (access rules, parsing and problems included) over whatever handlers a test gives it.
 */
import type { AddressInfo } from 'node:net';
import { PassThrough } from 'node:stream';
import { serve } from '@hono/node-server';
import { type TenantEndpoints, tenantEndpoints } from '../../../src/api/endpoints.ts';
import type { Caller } from '../../../src/contract/roles.ts';
import { MillraceError } from '../../../src/errors.ts';
import { type GatewayEndpoints, gatewayEndpoints } from '../../../src/gateway/installation/endpoints.ts';
import type { EndpointTable, Handlers } from '../../../src/http/endpoint.ts';
import { makeRouter, problemResponse } from '../../../src/http/router.ts';
import type { Io } from '../../../src/cli/session/io.ts';
import { runCli } from '../../../src/cli/program.ts';
import type { RoleCommands } from '../../../src/cli/commands/server/role-commands.ts';

export interface Ran {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface ShellOptions {
  readonly env?: Io['env'];
  readonly cwd?: string;
  readonly stdin?: string | Uint8Array;
  /** All three streams are terminals, 80 columns wide. */
  readonly tty?: boolean;
  readonly signal?: AbortSignal;
  readonly roles?: Partial<RoleCommands>;
  /** Is given what is printed, as it is printed. */
  readonly onOutput?: (text: string, stdout: PassThrough) => void;
}

export async function shell(argv: readonly string[], options: ShellOptions = {}): Promise<Ran> {
  const stream = (): PassThrough & { isTTY: boolean; columns: number } =>
    Object.assign(new PassThrough(), { isTTY: options.tty === true, columns: 80 });
  const [stdin, stdout, stderr] = [stream(), stream(), stream()];
  stdin.end(options.stdin ?? '');
  const said = { stdout: '', stderr: '' };
  stdout.on('data', (chunk: Buffer) => {
    said.stdout += chunk.toString('utf8');
    options.onOutput?.(chunk.toString('utf8'), stdout);
  });
  stderr.on('data', (chunk: Buffer) => {
    said.stderr += chunk.toString('utf8');
  });
  const { env = {}, cwd = '/', signal } = options;
  const code = await runCli(argv, { ...noRoles, ...options.roles }, { stdin, stdout, stderr, env, cwd, signal });
  await new Promise((resolve) => setImmediate(resolve));
  return { code, ...said };
}

const unexpected = async (): Promise<void> => {
  throw new Error('no role was to be started');
};
const noRoles: RoleCommands = {
  up: unexpected,
  down: unexpected,
  api: unexpected,
  launcher: unexpected,
  host: unexpected,
  courier: unexpected,
  conductor: unexpected,
  worker: unexpected,
};

export type SomeHandlers = Partial<Handlers<TenantEndpoints, string> & Handlers<GatewayEndpoints, string>>;

export interface LocalServer {
  readonly url: string;
  /** For `shell`: this server, with the root key. */
  readonly env: Record<string, string>;
  /** What was called: `METHOD /path`, with the tenant's prefix and the query. */
  readonly calls: string[];
  /** Cuts all connections, as a server does that is killed. */
  drop(): void;
  stop(): Promise<void>;
}

const keys: Readonly<Record<string, Caller>> = {
  'Bearer root-key': { kind: 'key', role: 'root', tenantId: null, tenant: null, actor: 'root' },
  'Bearer viewer-key': { kind: 'key', role: 'viewer', tenantId: 'default', tenant: 'default', actor: 'viewer' },
};

interface ServerOptions {
  readonly port?: number | undefined;
  /** Answers requests for which there is no handler. */
  readonly otherwise?: (request: Request, caller: Caller | undefined) => Promise<Response>;
}

/** Handlers are given the tenant's name as their context. */
export async function startLocalServer(
  handlers: SomeHandlers,
  { port = 0, otherwise }: ServerOptions = {},
): Promise<LocalServer> {
  const all: EndpointTable = { ...tenantEndpoints, ...gatewayEndpoints };
  const table = Object.fromEntries(Object.entries(all).filter(([key]) => key in handlers));
  const faults: unknown[] = [];
  const route = makeRouter(table, handlers as Handlers<EndpointTable, string>, (fault) => {
    if (!(fault instanceof MillraceError)) faults.push(fault);
  });
  const calls: string[] = [];
  const server = serve({ fetch: answer, port, hostname: '127.0.0.1' });
  await new Promise((resolve) => server.once('listening', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

  async function answer(request: Request): Promise<Response> {
    const { pathname, search } = new URL(request.url);
    calls.push(`${request.method} ${pathname}${search}`);
    const [, tenant = 'default', path = ''] = /^(?:\/t\/([^/]+))?(\/.*)$/.exec(pathname) ?? [];
    const caller = keys[request.headers.get('authorization') ?? ''];
    const inner = new Request(`http://local${path}${search}`, request);
    const notFound = new MillraceError('not_found', `nothing is served at ${pathname}`);
    return (
      (await route(inner, tenant, caller)) ?? (await otherwise?.(inner, caller)) ?? problemResponse(notFound, () => {})
    );
  }

  function drop(): void {
    if ('closeAllConnections' in server) server.closeAllConnections();
  }

  return {
    url,
    env: { MILLRACE_URL: url, MILLRACE_KEY: 'root-key' },
    calls,
    drop,
    async stop() {
      await new Promise<void>((resolve) => {
        server.close(() => resolve());
        drop();
      });
      if (faults.length > 0) throw new AggregateError(faults, 'the local server had faults');
    },
  };
}

/** An answer of `GET /api/installation`, but for its database. */
export const plainInstallation = { version: '9.8.7', node: '', couriers: [], warnings: [], settings: null };
