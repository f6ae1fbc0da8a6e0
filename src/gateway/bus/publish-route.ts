/**
 * `POST …/bus/topics/{name}` on node's own request. A web request costs several times as much as the rest of a single publish
 * (measured: 0.15 of a bare server with one, 0.65 without), so this route comes before it.
 *
 * 1. It takes only requests with an `Authorization` header. All others, such as those of a session, go the usual way, where the
 *    same endpoint answers them. With that header, neither the host name nor the origin is checked there either.
 * 2. The caller is known before the body is read. Bodies have the limit of the endpoint, and count in the same budget.
 * 3. Every answer has the same form, and the same headers, as on the usual way.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { maxPostBytes } from '../../api/bus/topics/endpoints.ts';
import { postedResponse } from '../../bus/publish/posted-response.ts';
import type { Caller } from '../../contract/roles.ts';
import { MillraceError } from '../../errors.ts';
import { checkContentEncoding } from '../../http/body.ts';
import type { Telemetry } from '../../kernel/telemetry.ts';
import type { RejectedCredentials } from '../access/rejected-credentials.ts';
import type { BodyBudget } from '../routing/body-budget.ts';
import { requestAnswered } from '../routing/telemetry.ts';
import type { Admission, Admissions } from './admissions.ts';
import { busChallenges } from './challenges.ts';
import type { PublishDesk } from './publish-desk.ts';

export interface PublishRouteOptions {
  readonly admissions: Admissions;
  readonly desk: PublishDesk;
  readonly bodies: BodyBudget;
  readonly rejectedCredentials: RejectedCredentials;
  readonly telemetry: Telemetry;
  /** Headers of every answer. */
  readonly guards: Readonly<Record<string, string>>;
  /** Converts an error to the one that the caller receives, and logs an unexpected one. */
  readonly explain: (error: unknown, caller: Caller | undefined) => MillraceError;
}

/** Handles the request and returns true, or returns false if it is not for this route. */
export type PublishRoute = (request: IncomingMessage, response: ServerResponse) => boolean;

/** Where the bus is: below its paths, or at the root of a listener of its own. */
const paths = {
  below: /^(?:\/t\/([^/?#]+))?\/bus\/topics\/([^/?#]+)$/,
  root: /^()\/topics\/([^/?#]+)$/,
} as const;

interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly authorization: string;
  /** Undefined: the key determines the tenant. */
  readonly tenant: string | undefined;
  readonly topic: string;
}

export function makePublishRoute(options: PublishRouteOptions, where: keyof typeof paths): PublishRoute {
  const path = paths[where];
  return (request, response) => {
    const { authorization } = request.headers;
    const match = request.method === 'POST' && authorization !== undefined ? path.exec(request.url ?? '') : null;
    if (match === null || authorization === undefined) return false;
    const tenant = where === 'root' ? undefined : decode(match[1] ?? 'default');
    const topic = decode(match[2] ?? '');
    if (topic === undefined || (where === 'below' && tenant === undefined)) return false;
    void answer(options, { request, response, authorization, tenant, topic });
    return true;
  };
}

/** Undefined: not valid percent-encoding. */
function decode(text: string): string | undefined {
  if (!text.includes('%')) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

async function answer(options: PublishRouteOptions, exchange: Exchange): Promise<void> {
  const startedMs = performance.now();
  const { request, response } = exchange;
  const caught: { caller?: Caller } = {};
  let sent: { status: number; headers: Readonly<Record<string, string>>; text: string };
  try {
    const admission = await admit(options, exchange);
    caught.caller = admission.caller;
    const giveBack = options.bodies.take(sizeOf(request), admission.caller);
    try {
      const body = await readBody(request);
      if (body === undefined) return;
      sent = postedResponse(await options.desk.post(admission.tenantId, postOf(exchange, admission, body)));
    } finally {
      giveBack();
    }
  } catch (error) {
    sent = problemAnswer(options.explain(error, caught.caller));
  }
  const length = String(Buffer.byteLength(sent.text));
  response.writeHead(sent.status, { ...options.guards, ...sent.headers, 'content-length': length });
  response.end(sent.text);
  requestAnswered.emit(options.telemetry, {
    method: 'POST',
    status: sent.status,
    ms: performance.now() - startedMs,
  });
}

async function admit(options: PublishRouteOptions, exchange: Exchange): Promise<Admission> {
  const known = options.admissions.find(exchange);
  if (known !== undefined) return known;
  try {
    return await options.admissions.admit(exchange);
  } catch (error) {
    if (error instanceof MillraceError && error.code === 'unauthenticated')
      options.rejectedCredentials.note('header', exchange.request.socket.remoteAddress ?? null);
    throw error;
  }
}

function postOf({ request, topic }: Exchange, { caller }: Admission, body: Buffer) {
  const key = request.headers['idempotency-key'];
  return { caller, topic, body, key: typeof key === 'string' ? key : null };
}

function sizeOf({ headers }: IncomingMessage) {
  return {
    method: 'POST',
    length: headers['content-length'] ?? null,
    isChunked: headers['transfer-encoding'] !== undefined,
  };
}

/** Reads the whole body. Returns undefined if the client has gone. */
async function readBody(request: IncomingMessage): Promise<Buffer | undefined> {
  checkContentEncoding(request.headers['content-encoding']);
  if (Number(request.headers['content-length']) > maxPostBytes) throw tooLarge();
  const chunks: Buffer[] = [];
  let size = 0;
  return new Promise((resolve, reject) => {
    request.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size > maxPostBytes) {
        chunks.length = 0;
        reject(tooLarge());
      } else chunks.push(chunk);
    });
    request.on('end', () => resolve(chunks.length === 1 ? chunks[0] : Buffer.concat(chunks, size)));
    request.on('error', () => resolve(undefined));
    request.on('close', () => resolve(undefined));
  });
}

function tooLarge(): MillraceError {
  return new MillraceError('too_large', `the body may be at most ${maxPostBytes} bytes long`, {
    headers: { connection: 'close' },
  });
}

function problemAnswer(error: MillraceError) {
  const headers: Record<string, string> = { 'content-type': 'application/problem+json', ...error.headers };
  if (error.code === 'unauthenticated') headers['www-authenticate'] = busChallenges;
  if (error.status === 503) headers['retry-after'] = '1';
  return { status: error.status, headers, text: JSON.stringify(error.problem()) };
}
