/**
 * The web interface: files of `ui/dist`, and its index for every page path.
 *
 * The folder is read once, completely. A request looks its path up among these files, so that no path leads out of the folder,
 * and pages and scripts belong to the same build even while a new one is written.
 */
import { readdir, readFile } from 'node:fs/promises';
import { extname, join, relative, sep } from 'node:path';
import { type FixedAnswer, makeFixedAnswer } from '../../http/fixed-answer.ts';

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
 * No foreign or inline content, no frames: a page that shows the output of tasks must not run it. Only `style` attributes are
 * allowed, which the editor writes and which cannot run code.
 */
const policy =
  "default-src 'self'; style-src 'self'; style-src-attr 'unsafe-inline'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'self'";

/** Maps a path to the answer with its file. A path without an extension is a page, which the index answers. */
export type StaticFiles = (path: string) => FixedAnswer | undefined;

/** A missing folder has no files. Files that end in `.gz` are the compressed form of others. */
export async function loadStaticFiles(folder: string): Promise<StaticFiles> {
  const contents = new Map<string, Uint8Array>();
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => []);
  for (const entry of entries) {
    if (!entry.isFile()) continue;
    const file = join(entry.parentPath, entry.name);
    contents.set(`/${relative(folder, file).split(sep).join('/')}`, await readFile(file));
  }
  const answers = new Map<string, FixedAnswer>();
  for (const [path, plain] of contents) {
    if (path.endsWith('.gz')) continue;
    answers.set(path, makeFixedAnswer({ plain, gzipped: contents.get(`${path}.gz`), headers: headersFor(path) }));
  }
  return (path) => {
    const asked = decode(path);
    return asked === undefined ? undefined : answers.get(extname(asked) === '' ? '/index.html' : asked);
  };
}

function decode(path: string): string | undefined {
  try {
    const decoded = decodeURIComponent(path);
    return decoded.includes('\0') ? undefined : decoded;
  } catch {
    return undefined;
  }
}

/** Built assets have a hash of their content in their name. */
function headersFor(path: string): Record<string, string> {
  const isHashed = path.startsWith('/assets/');
  return {
    'content-security-policy': policy,
    'content-type': types[extname(path)] ?? 'application/octet-stream',
    'cache-control': isHashed ? 'public, max-age=31536000, immutable' : 'no-cache',
  };
}
