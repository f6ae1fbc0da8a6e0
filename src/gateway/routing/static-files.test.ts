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

describe('files of the web interface', () => {
  it('are served with their type; hashed ones for ever, others to be asked about again', async () => {
    const asset = answerAt('/assets/app-1a2b.js');
    expect(await asset?.text()).toBe('app');
    expect(asset?.headers.get('content-type')).toBe('text/javascript; charset=utf-8');
    expect(asset?.headers.get('cache-control')).toContain('immutable');
    const icon = answerAt('/favicon.svg');
    expect(icon?.headers.get('content-type')).toBe('image/svg+xml');
    expect(icon?.headers.get('cache-control')).toBe('no-cache');
  });

  it('are its index for every path that is a page', async () => {
    for (const path of ['/', '/jobs', '/jobs/some-id', '/t/acme', '/deep/er/path'])
      expect(await textAt(path), path).toBe('<html>');
    expect(answerAt('/')?.headers.get('cache-control')).toBe('no-cache');
  });

  it('come compressed to clients that accept gzip', async () => {
    const shown = async (path: string, accepts?: string) => {
      const answer = answerAt(path, accepts === undefined ? {} : { 'accept-encoding': accepts });
      const { headers } = answer ?? new Response();
      return [await answer?.text(), headers.get('content-encoding'), headers.get('content-type'), headers.get('vary')];
    };
    const type = 'text/javascript; charset=utf-8';
    expect(await shown('/assets/big-1.js', 'br, gzip')).toEqual(['small', 'gzip', type, 'accept-encoding']);
    expect(await shown('/assets/big-1.js', 'br')).toEqual(['big', null, type, 'accept-encoding']);
    expect(await shown('/assets/big-1.js')).toEqual(['big', null, type, 'accept-encoding']);
    // not every file has a smaller one
    expect((await shown('/assets/app-1a2b.js', 'gzip')).slice(0, 2)).toEqual(['app', null]);
  });

  it('are not sent again to a client that has them', () => {
    const etag = answerAt('/')?.headers.get('etag') ?? '';
    expect(answerAt('/', { 'if-none-match': etag })?.status).toBe(304);
    expect(answerAt('/', { 'if-none-match': '"another"' })?.status).toBe(200);
  });

  it('are those of one build, also after a new one was written', async () => {
    await writeFile(join(folder, 'index.html'), '<html new>');
    expect(await textAt('/')).toBe('<html>');
  });

  it('have their length with them', () => {
    expect(answerAt('/assets/app-1a2b.js')?.headers.get('content-length')).toBe('3');
  });

  it('that are not there are not there', async () => {
    for (const path of ['/nothing.js', '/assets/app-9.js', '/assets/folder.d', '/assets/big-1.js.gz'])
      expect(await textAt(path), path).toBeUndefined();
  });

  it('never come from outside the folder, however the path is written', async () => {
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

  it('are not found for a path with NUL, or that is no percent-encoding', async () => {
    for (const path of ['/index.html%00.js', '/%00', '/a%00', '/%', '/%zz.js', '/%e0%a4%a.js'])
      expect(await textAt(path), path).toBeUndefined();
  });

  it('carry the policy that keeps a page from running what tasks print', () => {
    expect(answerAt('/')?.headers.get('content-security-policy')).toContain("default-src 'self'");
  });
});
