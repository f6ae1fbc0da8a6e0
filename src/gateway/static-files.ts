/** The web interface: files of `ui/dist`, and its index for every path that is a page of it. */
import { readFile } from 'node:fs/promises';
import { extname, join, normalize } from 'node:path';

const types: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.ico': 'image/x-icon',
  '.json': 'application/json',
  '.woff2': 'font/woff2',
};

/**
 * Nothing from elsewhere, nothing inline, no framing: a page that shows what tasks print must not run it. Only `style`
 * attributes are let through, which the editor writes and which can run nothing.
 */
const guard = {
  'content-security-policy':
    "default-src 'self'; style-src 'self'; style-src-attr 'unsafe-inline'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'x-frame-options': 'DENY',
};

/**
 * Answers `undefined` for a file that is not there; a path without an extension is a page. Who takes gzip (`accepts` is the
 * request's Accept-Encoding) gets what the build has compressed.
 */
export async function serveFile(
  folder: string,
  path: string,
  accepts: string | null = null,
): Promise<Response | undefined> {
  const asked = decode(path);
  if (asked === undefined || asked.includes('\0')) return undefined;
  const inside = normalize(join('/', asked));
  const extension = extname(inside);
  const file = extension === '' ? 'index.html' : inside;
  const whole = join(folder, file);
  const small = takesGzip(accepts) ? await bytesOf(`${whole}.gz`) : undefined;
  const body = small ?? (await bytesOf(whole));
  if (body === undefined) return undefined;
  const encoding: Record<string, string> = small === undefined ? {} : { 'content-encoding': 'gzip' };
  return new Response(body, { headers: { ...guard, ...headersFor(file), vary: 'accept-encoding', ...encoding } });
}

async function bytesOf(file: string): Promise<Uint8Array<ArrayBuffer> | undefined> {
  try {
    return new Uint8Array(await readFile(file));
  } catch {
    return undefined;
  }
}

/** `gzip;q=0` is a refusal. */
function takesGzip(accepts: string | null): boolean {
  return (accepts ?? '').split(',').some((each) => /^\s*gzip\s*(;\s*q=(1|0\.\d*[1-9])\d*\s*)?$/i.test(each));
}

function decode(path: string): string | undefined {
  try {
    return decodeURIComponent(path);
  } catch {
    return undefined;
  }
}

/** Built assets carry a hash of their content in their name. */
function headersFor(file: string): Record<string, string> {
  const hashed = file.startsWith('/assets/');
  return {
    'content-type': types[extname(file)] ?? 'application/octet-stream',
    'cache-control': hashed ? 'public, max-age=31536000, immutable' : 'no-cache',
  };
}
