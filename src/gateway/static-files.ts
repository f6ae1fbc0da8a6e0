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

/** Nothing from elsewhere, nothing inline, no framing: a page that shows what tasks print must not run it. */
const guard = {
  'content-security-policy':
    "default-src 'self'; style-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'x-frame-options': 'DENY',
};

/** Answers `undefined` for a file that is not there; a path without an extension is a page. */
export async function serveFile(folder: string, path: string): Promise<Response | undefined> {
  const asked = decode(path);
  if (asked === undefined || asked.includes('\0')) return undefined;
  const inside = normalize(join('/', asked));
  const extension = extname(inside);
  const file = extension === '' ? 'index.html' : inside;
  try {
    const body = await readFile(join(folder, file));
    return new Response(new Uint8Array(body), { headers: { ...guard, ...headersFor(file) } });
  } catch {
    return undefined;
  }
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
