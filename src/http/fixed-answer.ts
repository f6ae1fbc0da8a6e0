/**
 * Responses whose bytes stay the same while the process runs: pages, scripts, the description of the API.
 *
 * 1. The bytes, their compressed form and their ETag are computed once. A request reads, compresses and copies nothing.
 * 2. All responses share the bytes, so clients that do not read their response hold no copies.
 * 3. A client that has the bytes already (`If-None-Match`) gets 304 without a body.
 */
import { createHash } from 'node:crypto';
import { acceptsGzip } from './accept-encoding.ts';

export type FixedAnswer = (request: Pick<Request, 'headers'>) => Response;

export interface FixedContent {
  readonly plain: Uint8Array;
  /** Left out if compression gains nothing. */
  readonly gzipped?: Uint8Array | undefined;
  readonly headers: Readonly<Record<string, string>>;
}

export function makeFixedAnswer({ plain, gzipped, headers }: FixedContent): FixedAnswer {
  const etag = `W/"${createHash('sha256').update(plain).digest('base64url').slice(0, 22)}"`;
  const always = { ...headers, etag, vary: 'accept-encoding' };
  return (request) => {
    if (request.headers.get('if-none-match') === etag) return new Response(null, { status: 304, headers: always });
    if (gzipped === undefined || !acceptsGzip(request.headers.get('accept-encoding'))) return send(plain, always);
    return send(gzipped, { ...always, 'content-encoding': 'gzip' });
  };
}

/** `new Response(bytes)` would copy the bytes; a stream passes them on without a copy. */
function send(bytes: Uint8Array, headers: Readonly<Record<string, string>>): Response {
  const body = new ReadableStream({
    pull(controller) {
      if (bytes.length > 0) controller.enqueue(bytes);
      controller.close();
    },
  });
  return new Response(body, { headers: { ...headers, 'content-length': String(bytes.length) } });
}
