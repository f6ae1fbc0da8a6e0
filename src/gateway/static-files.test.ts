import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { serveFile } from './static-files.ts';

let root: string;
let folder: string;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'millrace-static-'));
  folder = join(root, 'dist');
  await mkdir(join(folder, 'assets', 'folder.d'), { recursive: true });
  await writeFile(join(root, 'secret.js'), 'secret');
  await writeFile(join(folder, 'index.html'), '<html>');
  await writeFile(join(folder, 'favicon.svg'), '<svg>');
  await writeFile(join(folder, 'assets', 'app-1a2b.js'), 'app');
});
afterAll(() => rm(root, { recursive: true }));

const textAt = async (path: string): Promise<string | undefined> => (await serveFile(folder, path))?.text();

describe('files of the web interface', () => {
  it('are served with their type; hashed ones for ever, others to be asked about again', async () => {
    const asset = await serveFile(folder, '/assets/app-1a2b.js');
    expect(await asset?.text()).toBe('app');
    expect(asset?.headers.get('content-type')).toBe('text/javascript; charset=utf-8');
    expect(asset?.headers.get('cache-control')).toContain('immutable');
    const icon = await serveFile(folder, '/favicon.svg');
    expect(icon?.headers.get('content-type')).toBe('image/svg+xml');
    expect(icon?.headers.get('cache-control')).toBe('no-cache');
  });

  it('are its index for every path that is a page', async () => {
    for (const path of ['/', '/jobs', '/jobs/some-id', '/t/acme', '/deep/er/path'])
      expect(await textAt(path), path).toBe('<html>');
    expect((await serveFile(folder, '/'))?.headers.get('cache-control')).toBe('no-cache');
  });

  it('come compressed to those who take it', async () => {
    await writeFile(join(folder, 'assets', 'big-1.js'), 'big');
    await writeFile(join(folder, 'assets', 'big-1.js.gz'), 'small');
    const told = async (accepts: string | null, path = '/assets/big-1.js') => {
      const answer = await serveFile(folder, path, accepts);
      const { headers } = answer ?? new Response();
      return [await answer?.text(), headers.get('content-encoding'), headers.get('content-type'), headers.get('vary')];
    };
    const type = 'text/javascript; charset=utf-8';
    for (const accepts of ['gzip', 'br, gzip;q=0.5', 'deflate , GZIP'])
      expect(await told(accepts), accepts).toEqual(['small', 'gzip', type, 'accept-encoding']);
    for (const accepts of [null, '', 'br', 'gzip;q=0', 'gzip;q=0.0', 'xgzip'])
      expect(await told(accepts), String(accepts)).toEqual(['big', null, type, 'accept-encoding']);
    // not every file has a smaller one
    expect((await told('gzip', '/assets/app-1a2b.js')).slice(0, 2)).toEqual(['app', null]);
  });

  it('that are not there are not there', async () => {
    for (const path of ['/nothing.js', '/assets/app-9.js', '/assets/folder.d'])
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

  it('carry the headers that keep a page from running what tasks print', async () => {
    const { headers } = (await serveFile(folder, '/')) ?? new Response();
    expect(headers.get('content-security-policy')).toContain("default-src 'self'");
    expect(headers.get('x-content-type-options')).toBe('nosniff');
    expect(headers.get('x-frame-options')).toBe('DENY');
  });
});
