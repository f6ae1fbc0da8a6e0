import { chown, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { findConnection, findHome } from './connection.ts';

let folder = '';
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'millrace-cli-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

async function makeHome(home: string, files: Record<string, string>): Promise<void> {
  await mkdir(home, { recursive: true });
  for (const [name, text] of Object.entries(files)) await writeFile(join(home, name), text);
}
const running = { 'server.json': '{"url": "http://127.0.0.1:8080/"}', 'root-key': 'secret\n' };

describe('the home', () => {
  it('the home is the nearest .millrace in this folder or above it', async () => {
    await makeHome(join(folder, '.millrace'), running);
    const cwd = join(folder, 'a', 'b');
    await mkdir(cwd, { recursive: true });
    expect(await findHome({ cwd, env: {} })).toBe(join(folder, '.millrace'));
    await mkdir(join(folder, 'a', '.millrace'));
    expect(await findHome({ cwd, env: {} })).toBe(join(folder, 'a', '.millrace'));
  });

  it('the home is --home, else MILLRACE_HOME, relative to this folder', async () => {
    await makeHome(join(folder, '.millrace'), running);
    expect(await findHome({ cwd: folder, env: { MILLRACE_HOME: 'x' } })).toBe(join(folder, 'x'));
    expect(await findHome({ cwd: folder, env: { MILLRACE_HOME: 'x' }, home: '/y' })).toBe('/y');
    expect(await findHome({ cwd: folder, env: { MILLRACE_HOME: '' } })).toBe(join(folder, '.millrace'));
  });

  it('the home is the one that `up` would create if there is none', async () => {
    expect(await findHome({ cwd: folder, env: {} })).toBe(join(folder, '.millrace'));
  });
});

describe.skipIf(process.getuid?.() !== 0)('a home of another user', () => {
  beforeEach(async () => {
    await makeHome(join(folder, '.millrace'), running);
    await chown(join(folder, '.millrace'), 12_345, 12_345);
  });

  it("another user's home is rejected if it was only found, because it names the server that gets the key", async () => {
    const place = { cwd: folder, env: { MILLRACE_KEY: 'mine' } };
    await expect(findConnection(place)).rejects.toThrow('belongs to user 12345');
    await expect(findHome(place)).rejects.toThrow(`--home ${join(folder, '.millrace')}`);
  });

  it("another user's home is used if it is named, and ignored if a server is named", async () => {
    const home = join(folder, '.millrace');
    expect(await findConnection({ cwd: folder, env: {}, home })).toMatchObject({ key: 'secret' });
    const env = { MILLRACE_URL: 'http://127.0.0.1:8080' };
    expect(await findConnection({ cwd: folder, env })).toEqual({ url: 'http://127.0.0.1:8080', key: undefined });
  });
});

describe('the connection', () => {
  it('the connection is read from the home of `up`', async () => {
    await makeHome(join(folder, '.millrace'), running);
    const home = join(folder, '.millrace');
    expect(await findConnection({ cwd: folder, env: {} })).toEqual({
      url: 'http://127.0.0.1:8080',
      key: 'secret',
      home,
    });
  });

  it('the connection is read from the environment, and --url overrides it', async () => {
    const env = { MILLRACE_URL: 'https://a.example/base/', MILLRACE_KEY: ' k ' };
    expect(await findConnection({ cwd: folder, env })).toEqual({ url: 'https://a.example/base', key: 'k' });
    expect(await findConnection({ cwd: folder, env, url: 'http://b:1' })).toEqual({ url: 'http://b:1', key: 'k' });
  });

  it('the key may be in a file that a variable names', async () => {
    await writeFile(join(folder, 'mounted'), 'k\n', { mode: 0o444 });
    const env = { MILLRACE_URL: 'http://a', MILLRACE_KEY_FILE: join(folder, 'mounted') };
    expect(await findConnection({ cwd: folder, env })).toEqual({ url: 'http://a', key: 'k' });
  });

  it('the root key of the home is never sent to another server', async () => {
    await makeHome(join(folder, '.millrace'), running);
    const env = { MILLRACE_ROOT_KEY: 'other' };
    expect(await findConnection({ cwd: folder, env, url: 'http://evil.example' })).toEqual({
      url: 'http://evil.example',
      key: undefined,
    });
    const own = await findConnection({ cwd: folder, env: {}, url: 'http://127.0.0.1:8080' });
    expect(own.key).toBe('secret');
  });

  it('an error without a known server says what to do', async () => {
    await expect(findConnection({ cwd: folder, env: {} })).rejects.toThrow(
      `no server is known: ${join(folder, '.millrace')} has no server.json; start it with \`millrace up\`, or set MILLRACE_URL`,
    );
  });

  it('invalid addresses, and keys in addresses, are rejected', async () => {
    await expect(findConnection({ cwd: folder, env: {}, url: 'localhost:8080' })).rejects.toThrow(
      'http://127.0.0.1:8080',
    );
    await expect(findConnection({ cwd: folder, env: {}, url: 'http://k@h' })).rejects.toThrow('MILLRACE_KEY');
  });

  it('a broken server.json is ignored if the address is given', async () => {
    await makeHome(join(folder, '.millrace'), { 'server.json': '{' });
    await expect(findConnection({ cwd: folder, env: {} })).rejects.toThrow('does not name a server');
    expect((await findConnection({ cwd: folder, env: {}, url: 'http://h' })).url).toBe('http://h');
  });
});
