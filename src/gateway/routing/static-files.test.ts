import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadStaticFiles, type StaticFiles } from './static-files.ts';

let root: string;
let folder: string;
let files: StaticFiles;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'millrace-static-'));
  folder = join(root, 'dist');
  await mkdir(join(folder, 'assets', 'folder.d'), { recursive: true });
  await writeFile(join(root, 'secret.js'), 'secret');
  await writeFile(join(folder, 'index.html'), '<html>');
  await writeFile(join(folder, 'favicon.svg'), '<svg>');
  await writeFile(join(folder, 'assets', 'app-1a2b.js'), 'app');
  await writeFile(join(folder, 'assets', 'big-1.js'), 'big');
  await writeFile(join(folder, 'assets', 'big-1.js.gz'), 'small');
  files = await loadStaticFiles(folder);
});
afterAll(() => rm(root, { recursive: true }));

const answerAt = (path: string, sent: Record<string, string> = {}): Response | undefined =>
  files(path)?.({ headers: new Headers(sent) });
const textAt = async (path: string): Promise<string | undefined> => answerAt(path)?.text();

describe('static files', () => {
  it('files are served with their type; hashed ones are cached for ever, others are revalidated', async () => {
    const asset = answerAt('/assets/app-1a2b.js');
    expect(await asset?.text()).toBe('app');
    expect(asset?.headers.get('content-type')).toBe('text/javascript; charset=utf-8');
    expect(asset?.headers.get('cache-control')).toContain('immutable');
    const icon = answerAt('/favicon.svg');
    expect(icon?.headers.get('content-type')).toBe('image/svg+xml');
    expect(icon?.headers.get('cache-control')).toBe('no-cache');
  });

  it('every page path is answered with the index', async () => {
    for (const path of ['/', '/jobs', '/jobs/some-id', '/t/acme', '/deep/er/path'])
      expect(await textAt(path), path).toBe('<html>');
    expect(answerAt('/')?.headers.get('cache-control')).toBe('no-cache');
  });

  it('files are sent compressed to clients that accept gzip', async () => {
    const shown = async (path: string, accepts?: string) => {
      const answer = answerAt(path, accepts === undefined ? {} : { 'accept-encoding': accepts });
      const { headers } = answer ?? new Response();
      return [await answer?.text(), headers.get('content-encoding'), headers.get('content-type'), headers.get('vary')];
    };
    const type = 'text/javascript; charset=utf-8';
    expect(await shown('/assets/big-1.js', 'br, gzip')).toEqual(['small', 'gzip', type, 'accept-encoding']);
    expect(await shown('/assets/big-1.js', 'br')).toEqual(['big', null, type, 'accept-encoding']);
    expect(await shown('/assets/big-1.js')).toEqual(['big', null, type, 'accept-encoding']);
    // not every file has a compressed form
    expect((await shown('/assets/app-1a2b.js', 'gzip')).slice(0, 2)).toEqual(['app', null]);
  });

  it('a file is not sent again to a client that has it', () => {
    const etag = answerAt('/')?.headers.get('etag') ?? '';
    expect(answerAt('/', { 'if-none-match': etag })?.status).toBe(304);
    expect(answerAt('/', { 'if-none-match': '"another"' })?.status).toBe(200);
  });

  it('all files are of one build, even after a new one was written', async () => {
    await writeFile(join(folder, 'index.html'), '<html new>');
    expect(await textAt('/')).toBe('<html>');
  });

  it('a file is sent with its length', () => {
    expect(answerAt('/assets/app-1a2b.js')?.headers.get('content-length')).toBe('3');
  });

  it('a missing file is not found', async () => {
    for (const path of ['/nothing.js', '/assets/app-9.js', '/assets/folder.d', '/assets/big-1.js.gz'])
      expect(await textAt(path), path).toBeUndefined();
  });

  it('no path leads out of the folder', async () => {
    const paths = [
      '/../secret.js',
      '/..%2fsecret.js',
      '/%2e%2e/secret.js',
      '/%2e%2e%2fsecret.js',
      '/assets/../../secret.js',
      '/assets/..%2f..%2fsecret.js',
      '//../secret.js',
      '/..\\secret.js',
      '/..%5csecret.js',
      '/%252e%252e/secret.js',
      '..%2fsecret.js',
      '../secret.js',
      '/./../../dist/../secret.js',
    ];
    for (const path of paths) expect(await textAt(path), path).not.toBe('secret');
  });

  it('a path with NUL or invalid percent-encoding is not found', async () => {
    for (const path of ['/index.html%00.js', '/%00', '/a%00', '/%', '/%zz.js', '/%e0%a4%a.js'])
      expect(await textAt(path), path).toBeUndefined();
  });

  it('pages have the policy that prevents running the output of tasks', () => {
    expect(answerAt('/')?.headers.get('content-security-policy')).toContain("default-src 'self'");
  });
});
