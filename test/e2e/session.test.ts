/** How a browser signs in and out, and what pages of other origins cannot make it do. */
import { createHash } from 'node:crypto';
import { realpath, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { newId } from '../../src/kernel/id.ts';
import { ask, bearer, type Reply } from '../harness/ask.ts';
import { anyText } from '../harness/expected.ts';
import { millrace, type Product, removeHome, startProduct } from '../harness/product.ts';
import { until } from '../harness/until.ts';

let product: Product;
beforeAll(async () => {
  product = await startProduct();
});
afterAll(async () => {
  await product.stop();
  await removeHome(product.home);
});

const json = { 'content-type': 'application/json' };

function signIn(credential: { link: string } | { key: string }, headers: Record<string, string> = {}): Promise<Reply> {
  return ask(`${product.url}/api/session`, {
    method: 'POST',
    headers: { ...json, ...headers },
    body: JSON.stringify(credential),
  });
}

/** The part after the `#`, which only the page's own script sees. */
function secretOf(url: string): string {
  return new URL(url).hash.slice(1);
}

async function newLink(): Promise<string> {
  return secretOf((await product.call('POST /api/session/links')).url);
}

function cookieOf(reply: Reply): string {
  return reply.headers['set-cookie']?.[0]?.split(';')[0] ?? '';
}

/** A signed-in browser: its requests carry the cookie, its writes also an origin. */
async function browser(credential?: { key: string }): Promise<Record<string, string>> {
  const reply = await signIn(credential ?? { link: await newLink() });
  expect(reply.status).toBe(201);
  return { cookie: cookieOf(reply) };
}

async function statusOf(path: string, headers: Record<string, string>, method = 'GET', body?: string): Promise<number> {
  return (await ask(product.url + path, { method, headers, ...(body === undefined ? {} : { body }) })).status;
}

const writeProject = (headers: Record<string, string>): Promise<number> =>
  statusOf('/api/projects', { ...json, ...headers }, 'PUT', `{"name":"p ${newId()}"}`);

describe('sign-in link', () => {
  it('a sign-in link signs in as root, with a cookie that scripts and other sites cannot use', async () => {
    const reply = await signIn({ link: await newLink() });
    expect([reply.status, reply.json()]).toEqual([201, { role: 'root', tenant: null, actor: 'sign-in link' }]);
    const [pair = '', ...attributes] = (reply.headers['set-cookie']?.[0] ?? '').split('; ');
    expect(attributes.toSorted()).toEqual(['HttpOnly', 'Max-Age=43200', 'Path=/', 'SameSite=Strict']);
    const instance = createHash('sha256')
      .update(await realpath(product.home))
      .digest('hex')
      .slice(0, 8);
    expect(pair).toMatch(new RegExp(`^millrace_${instance}=mrs_`));
  });

  it('a sign-in link works once', async () => {
    const link = await newLink();
    const replies = await Promise.all([signIn({ link }), signIn({ link }), signIn({ link })]);
    expect(replies.map((reply) => reply.status).toSorted((a, b) => a - b)).toEqual([201, 401, 401]);
    const late = await signIn({ link });
    expect([late.status, late.headers['set-cookie'], late.json()]).toMatchObject([
      401,
      undefined,
      { code: 'unauthenticated' },
    ]);
  });

  it('a GET of the link’s address does not use it up', async () => {
    const { url } = await product.call('POST /api/session/links');
    expect(new URL(url).origin).toBe(product.url);
    const page = await ask(url.split('#')[0] ?? '');
    expect(page.status).toBe(200);
    expect(page.headers['content-type']).toContain('text/html');
    expect((await signIn({ link: secretOf(url) })).status).toBe(201);
  });

  it('`millrace up` and `millrace open` print a sign-in link', async () => {
    const greeted = /sign in +(\S+)/.exec(product.output())?.[1] ?? '';
    const opened = await millrace(['open'], { home: product.home });
    expect(opened.code).toBe(0);
    for (const url of [greeted, opened.stdout.trim()]) {
      expect(url).toMatch(new RegExp(`^${product.url}/signin#mrl_`));
      expect((await signIn({ link: secretOf(url) })).status).toBe(201);
    }
  });

  it('an invalid sign-in link is refused', async () => {
    for (const link of ['', 'mrl_x', product.rootKey]) expect((await signIn({ link })).status).toBe(401);
    for (const body of ['', '{}', '[]', '{"link":1}', '{"link":"a","key":"b"}']) {
      expect([body, await statusOf('/api/session', json, 'POST', body)]).toEqual([body, 400]);
    }
  });
});

describe('session', () => {
  it('a session may read what its role may', async () => {
    const headers = await browser();
    for (const path of ['/api/me', '/api/projects', '/api/keys', '/t/default/api/jobs'])
      expect([path, await statusOf(path, headers)]).toEqual([path, 200]);
    expect((await ask(`${product.url}/api/me`, { headers })).json()).toEqual({
      role: 'root',
      tenant: null,
      actor: 'sign-in link',
    });
  });

  it('a session may write only from a page of the same origin', async () => {
    const headers = await browser();
    const foreign = [
      'http://evil.example',
      'null',
      'http://127.0.0.1:1',
      product.url.replace('http://', 'http://x.'),
      `${product.url}.evil.example`,
      'not a url',
    ];
    expect(await writeProject(headers)).toBe(403);
    for (const origin of foreign) expect([origin, await writeProject({ ...headers, origin })]).toEqual([origin, 403]);
    expect(await writeProject({ ...headers, origin: product.url })).toBe(201);
  });

  it('a session of a key has the role and tenant of that key', async () => {
    const { key } = await product.call('POST /api/keys', { body: { name: 'looks', role: 'viewer' } });
    const headers = { ...(await browser({ key })), origin: product.url };
    expect((await ask(`${product.url}/api/me`, { headers })).json()).toEqual({
      role: 'viewer',
      tenant: 'default',
      actor: 'key:looks',
    });
    expect(await statusOf('/api/projects', headers)).toBe(200);
    expect(await writeProject(headers)).toBe(403);
    expect(await statusOf('/api/keys', headers)).toBe(403);
    expect(await statusOf('/t/elsewhere/api/projects', headers)).toBe(403);
    expect((await signIn({ key: 'mrk_nonsense' })).status).toBe(401);
  });

  it('a session ends with its key', async () => {
    const { id, key } = await product.call('POST /api/keys', { body: { name: 'gone soon', role: 'operator' } });
    const [headers, other] = [await browser({ key }), await browser()];
    expect(await statusOf('/api/projects', headers)).toBe(200);
    await product.call('DELETE /api/keys/{id}', { params: { id } });
    expect(await statusOf('/api/projects', headers)).toBe(401);
    expect(await statusOf('/api/projects', other)).toBe(200);
    expect((await signIn({ key })).status).toBe(401);
  });

  it('signing out ends only the session of that browser', async () => {
    const [headers, other] = [await browser(), await browser()];
    expect(await statusOf('/api/session', headers, 'DELETE')).toBe(403);
    const out = await ask(`${product.url}/api/session`, {
      method: 'DELETE',
      headers: { ...headers, origin: product.url },
    });
    expect(out.status).toBe(204);
    expect(out.headers['set-cookie']?.[0]).toMatch(/=; .*Max-Age=0/);
    expect(await statusOf('/api/projects', headers)).toBe(401);
    expect(await statusOf('/api/projects', other)).toBe(200);
  });

  it('the command line lists and ends sessions', async () => {
    const { key } = await product.call('POST /api/keys', { body: { name: 'lost laptop', role: 'operator' } });
    const [headers, other] = [await browser({ key }), await browser()];
    const listed = await millrace(['session', 'list', '--json'], { home: product.home });
    const found = (JSON.parse(listed.stdout) as { id: string; key: { name: string } }[]).find(
      (session) => session.key.name === 'lost laptop',
    );
    const ended = await millrace(['session', 'end', found?.id ?? ''], { home: product.home });
    expect([ended.code, ended.stdout]).toEqual([0, `session ${found?.id} has ended\n`]);
    expect([await statusOf('/api/projects', headers), await statusOf('/api/projects', other)]).toEqual([401, 200]);
    expect((await millrace(['session', 'end', '--all'], { home: product.home })).code).toBe(0);
    expect(await statusOf('/api/projects', other)).toBe(401);
  });

  it('a refused sign-in is in the audit, with the address', async () => {
    await signIn({ key: 'mrk_that-nobody-has-made' });
    const refused = await until('the refusal is written', async () => {
      const { items } = await product.call('GET /api/installation/audit', { query: { actor: 'nobody' } });
      return items.find(({ type }) => type === 'session.refused');
    });
    expect(refused.body).toMatchObject({ address: '127.0.0.1', with: anyText, reason: anyText });
  });

  it('an unknown session is refused', async () => {
    const [name = ''] = (await browser())['cookie']?.split('=') ?? [];
    for (const cookie of [`${name}=`, `${name}=mrs_x`, `${name}=${product.rootKey}`, `other_${name}=x`]) {
      expect([cookie, await statusOf('/api/projects', { cookie })]).toEqual([cookie, 401]);
    }
  });

  it('a key in the request takes precedence over the session', async () => {
    const headers = await browser();
    expect(await statusOf('/api/projects', { ...headers, ...bearer('mrk_wrong') })).toBe(401);
    expect(await writeProject({ ...headers, ...bearer(product.rootKey) })).toBe(201);
  });
});

describe('page of another origin', () => {
  it('a page of another origin cannot sign its visitor in', async () => {
    expect((await signIn({ link: await newLink() }, { origin: 'http://evil.example' })).status).toBe(403);
    expect((await signIn({ key: product.rootKey }, { origin: 'http://evil.example' })).status).toBe(403);
    expect((await signIn({ link: await newLink() }, { origin: product.url })).status).toBe(201);
  });

  it('a page of another origin gets no header that lets it read an answer', async () => {
    const reply = await ask(`${product.url}/api/projects`, {
      headers: { ...(await browser()), origin: 'http://evil.example' },
    });
    expect(Object.keys(reply.headers).filter((name) => name.startsWith('access-control-'))).toEqual([]);
  });

  it('a page of another origin cannot read a log by WebSocket with the cookie of its visitor', async () => {
    const headers = await browser();
    const opening = (origin?: string): Promise<number> =>
      handshake({ ...headers, ...(origin === undefined ? {} : { origin }) });
    // 404: access was granted, but the run does not exist
    expect(await opening(product.url)).toBe(404);
    expect(await opening()).toBe(404);
    for (const origin of ['http://evil.example', 'http://127.0.0.1:1', 'null'])
      expect([origin, await opening(origin)]).toEqual([origin, 403]);
    expect(await handshake({ ...bearer(product.rootKey), origin: 'http://evil.example' })).toBe(404);
  });
});

function handshake(headers: Record<string, string>): Promise<number> {
  const url = `${product.url.replace('http', 'ws')}/api/task_runs/${newId()}/logs`;
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(url, { headers });
    socket.on('unexpected-response', (_, response) => resolve(response.statusCode ?? 0));
    socket.on('open', () => reject(new Error('it was opened')));
    socket.on('error', reject);
  });
}

describe('host name', () => {
  const port = (): string => new URL(product.url).port;

  it('a foreign host name is refused without a key, against DNS rebinding', async () => {
    const cookie = await browser();
    for (const host of ['evil.example', 'localhost.evil.example', '127.0.0.1.evil.example', 'xlocalhost', '1']) {
      for (const path of ['/healthz', '/api/jobs/schema', '/api/projects', '/', '/signin']) {
        const reply = await ask(product.url + path, { headers: { ...cookie, host: `${host}:${port()}` } });
        expect([host, path, reply.status, reply.json()]).toMatchObject([host, path, 403, { code: 'unknown_host' }]);
      }
    }
    expect((await signIn({ link: await newLink() }, { host: 'evil.example' })).status).toBe(403);
  });

  it('any host name is accepted with a key', async () => {
    expect(await statusOf('/api/projects', { ...bearer(product.rootKey), host: 'anything.example' })).toBe(200);
    expect(await statusOf('/api/projects', { ...bearer('mrk_wrong'), host: 'anything.example' })).toBe(401);
  });

  it('host names of this machine and IP addresses are accepted', async () => {
    for (const host of ['localhost', 'LOCALHOST', '127.0.0.1', '127.9.9.9', '[::1]', '10.1.2.3', '[fe80::1]']) {
      for (const suffix of ['', `:${port()}`])
        expect([host, await statusOf('/healthz', { host: host + suffix })]).toEqual([host, 200]);
    }
  });
});

describe('installation', () => {
  it('every reader sees the version; root also sees the settings, without secrets', async () => {
    const root = await product.call('GET /api/installation');
    expect(root).toMatchObject({ version: anyText, node: process.versions.node });
    const home = root.settings?.find(({ name }) => name === 'MILLRACE_HOME');
    expect(home).toMatchObject({ set: true, value: await realpath(product.home) });
    expect(JSON.stringify(root)).not.toContain(product.rootKey);
    const { key } = await product.call('POST /api/keys', { body: { name: 'looks', role: 'viewer' } });
    const reply = await ask(`${product.url}/api/installation`, { headers: bearer(key) });
    expect(reply.json()).toEqual({ ...root, settings: null });
  });

  it('the audit records who created and revoked keys, and who signed in', async () => {
    const { id, key } = await product.call('POST /api/keys', { body: { name: 'passing', role: 'operator' } });
    await browser({ key });
    await product.call('DELETE /api/keys/{id}', { params: { id } });
    const { items, next } = await product.call('GET /api/installation/audit', { query: { limit: 3 } });
    expect(items).toMatchObject([
      { type: 'key.revoked', actor: 'key:root', subject: id, name: 'passing', page: null },
      { type: 'session.opened', actor: 'key:passing', subject: id, body: { role: 'operator', tenant: 'default' } },
      { type: 'key.created', actor: 'key:root', subject: id, name: 'passing', topic: 'millrace_keys' },
    ]);
    expect(next).toBe(items[2]?.seq);
    const tenants = { query: { topic: 'millrace_tenants', machines: 'true' } } as const;
    expect((await product.call('GET /api/installation/audit', tenants)).items.at(-1)).toMatchObject({
      type: 'tenant.created',
      actor: 'installation',
      name: 'default',
    });
    expect(JSON.stringify(items)).not.toContain(key);
  });
});

describe('root key', () => {
  it('a replaced root key and its sessions are refused', async () => {
    const headers = await browser({ key: product.rootKey });
    const [link, unspent] = [await browser(), await newLink()];
    await product.stop();
    const key = 'another-root-key-for-the-same-home';
    product = await startProduct({ home: product.home, env: { MILLRACE_ROOT_KEY: key } });
    expect(await statusOf('/api/projects', bearer(key))).toBe(200);
    // the file still holds the old one
    expect(await statusOf('/api/projects', bearer(product.rootKey))).toBe(401);
    expect(await statusOf('/api/projects', headers)).toBe(401);
    expect(await statusOf('/api/projects', link)).toBe(401);
    expect((await signIn({ link: unspent })).status).toBe(401);
  });

  it('a new root key is created when its file is removed, and ends every session', async () => {
    const before = { ...bearer('another-root-key-for-the-same-home') };
    const made = await ask(`${product.url}/api/session/links`, { method: 'POST', headers: before });
    const reply = await signIn({ link: secretOf((made.json() as { url: string }).url) });
    const headers = { cookie: cookieOf(reply) };
    expect(await statusOf('/api/projects', headers)).toBe(200);
    await product.stop();
    await rm(join(product.home, 'root-key'));
    product = await startProduct({ home: product.home });
    expect(await statusOf('/api/projects', bearer(product.rootKey))).toBe(200);
    expect([await statusOf('/api/projects', before), await statusOf('/api/projects', headers)]).toEqual([401, 401]);
  });

  it('the root key cannot be revoked, because that would lock all users out', async () => {
    const own = (await product.call('GET /api/keys')).items.find((key) => key.created_by === 'installation');
    const revoked = await millrace(['key', 'revoke', own?.id ?? ''], { home: product.home });
    expect([revoked.code, revoked.stderr]).toEqual([1, expect.stringContaining('root-key') as unknown]);
    expect(await statusOf('/api/projects', bearer(product.rootKey))).toBe(200);
  });

  it('a root key that cannot be sent in a header is refused at the start', async () => {
    for (const key of ['a key with spaces in it', 'name:password:and-more']) {
      const refused = await millrace(['up', '--port', '0'], {
        env: { MILLRACE_HOME: '/nowhere/at/all', MILLRACE_ROOT_KEY: key },
      });
      expect(refused.code).not.toBe(0);
      expect(refused.stderr).toContain('MILLRACE_ROOT_KEY');
      expect(refused.stderr).not.toContain(key);
    }
  });
});
