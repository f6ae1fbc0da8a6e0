/** Sessions: how they begin and end, and which credentials never open one. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { everyone } from '../../contract/channels.ts';
import { type Fleet, makeFleet } from '../../../test/harness/fleet.ts';
import { makeTestGateway, type TestGateway } from '../../../test/harness/gateway.ts';
import { collectPages } from '../../http/client.ts';
import { newId } from '../../kernel/id.ts';
import { sql } from '../../kernel/sql.ts';
import { hashOf } from './callers.ts';
import { insertKey, installationActor } from '../installation/queries.ts';
import { enforceRootKey } from './root-key.ts';
import { insertSession } from './session-queries.ts';

const origin = 'http://127.0.0.1';
const rootKey = 'the-root-key-of-this-test';

let fleet: Fleet;
let gateway: TestGateway;
beforeAll(async () => {
  fleet = await makeFleet(['a']);
});
afterAll(() => fleet.close());
beforeEach(async () => {
  await fleet.control.db.exec(sql`delete from key`);
  gateway = makeTestGateway(fleet);
  await enforceRootKey(gateway.context, rootKey);
});

type Headers = Record<string, string>;
const bearer = (key: string): Headers => ({ authorization: `Bearer ${key}` });
const root = bearer(rootKey);

interface Listed {
  readonly id: string;
  readonly actor: string;
  readonly current: boolean;
  readonly key: { readonly name: string };
}

async function read<T>(path: string, headers: Headers): Promise<T> {
  const answer = await gateway.fetch('GET', path, headers);
  expect(answer.status).toBe(200);
  return (await answer.json()) as T;
}

const list = async (headers = root): Promise<Listed[]> =>
  (await read<{ items: Listed[] }>('/api/sessions', headers)).items;

/** A signed-in browser whose writes come from our own page. */
const browser = async (key: string): Promise<Headers> => ({ cookie: await gateway.session(key), origin });

async function statusOf(headers: Headers, method = 'GET', path = '/api/me'): Promise<number> {
  return (await gateway.fetch(method, path, headers)).status;
}

async function makeKey(name: string): Promise<{ id: string; key: string }> {
  const answer = await gateway.fetch('POST', '/api/keys', root, { name, role: 'root' });
  return (await answer.json()) as { id: string; key: string };
}

async function newLink(headers: Headers): Promise<string> {
  const answer = await gateway.fetch('POST', '/api/session/links', headers);
  expect(answer.status).toBe(201);
  return new URL(((await answer.json()) as { url: string }).url).hash.slice(1);
}

async function signIn(credential: object): Promise<{ status: number; headers: Headers }> {
  const answer = await gateway.fetch('POST', '/api/session', { origin }, credential);
  return { status: answer.status, headers: { cookie: answer.headers.get('set-cookie')?.split(';')[0] ?? '', origin } };
}

async function events(type: string): Promise<{ actor: string; body: Record<string, unknown> }[]> {
  const query = { items: [] as { type: string; actor: string; body: Record<string, unknown> }[] };
  const { items } = await read<typeof query>('/api/installation/audit?machines=true&limit=500', root);
  return items.filter((item) => item.type === type);
}

describe('empty and short credentials', () => {
  it('an empty or short credential never signs in, even if its hash is that of a root key, a session or a link', async () => {
    const { db } = fleet.control;
    const at = new Date(fleet.time.now());
    const until = new Date(fleet.time.now() + 60_000);
    for (const short of ['', 'x', 'fifteen letters']) {
      const hash = hashOf(short);
      const keyId = newId();
      await insertKey(db, { id: keyId, name: 'root', role: 'root', tenantId: null, hash, at, by: 'test' });
      await insertSession(db, { id: newId(), hash, keyId, openedWith: 'key', role: 'root', actor: '', at, until });
      await db.exec(sql`
        insert into sign_in_link (hash, key_id, created_at, expires_at) values (${hash}, ${keyId}, ${at}, ${until})`);
      const basic = `Basic ${Buffer.from(`${short}:`).toString('base64')}`;
      expect((await signIn({ key: short })).status).toBe(401);
      expect((await signIn({ link: short })).status).toBe(401);
      for (const authorization of [basic, `Bearer ${short}`, 'Basic', 'Bearer'])
        expect([authorization, await statusOf({ authorization })]).toEqual([authorization, 401]);
      expect(await statusOf({ cookie: `millrace_test=${short}` })).toBe(401);
    }
  });
});

describe('sessions', () => {
  it('sessions are listed for root, with their key, role, tenant and times', async () => {
    const viewer = await gateway.key('viewer', 'a');
    const own = await browser(rootKey);
    const other = await browser(viewer);
    const nowText = new Date(fleet.time.now()).toISOString();
    expect((await list(own)).toSorted((x, y) => x.actor.localeCompare(y.actor))).toMatchObject([
      { actor: 'key:root', role: 'root', tenant: null, key: { name: 'root' }, opened_with: 'key', current: true },
      { actor: 'key:viewer', role: 'viewer', tenant: 'a', key: { name: 'viewer' }, current: false, used_at: nowText },
    ]);
    expect((await list()).some(({ current }) => current)).toBe(false);
    expect(JSON.stringify(await list())).not.toContain(other['cookie']?.split('=')[1]);
    for (const path of ['/api/sessions', `/api/sessions/${newId()}`]) {
      expect(await statusOf(bearer(viewer), 'DELETE', path)).toBe(403);
      expect(await statusOf({}, 'DELETE', path)).toBe(401);
    }
  });

  it('sessions can be ended one by one, and the audit records the actor', async () => {
    const [first, second] = [await browser(rootKey), await browser(await gateway.key('viewer', 'a'))];
    const ofViewer = (await list()).find(({ actor }) => actor === 'key:viewer')?.id ?? '';
    expect(await statusOf(root, 'DELETE', `/api/sessions/${ofViewer}`)).toBe(204);
    expect([await statusOf(first), await statusOf(second)]).toEqual([200, 401]);
    expect(await statusOf(root, 'DELETE', `/api/sessions/${ofViewer}`)).toBe(404);
    expect((await events('session.ended'))[0]).toMatchObject({ actor: 'key:root', body: { name: 'key:viewer' } });
  });

  it('all sessions but that of the caller can be ended at once', async () => {
    const [own, other] = [await browser(rootKey), await browser(rootKey)];
    const ended = await gateway.fetch('DELETE', '/api/sessions', own);
    expect([ended.status, await ended.json()]).toEqual([200, { ended: 1 }]);
    expect([await statusOf(own), await statusOf(other)]).toEqual([200, 401]);
    expect(await (await gateway.fetch('DELETE', '/api/sessions', root)).json()).toEqual({ ended: 1 });
    expect([await statusOf(own), await list()]).toEqual([401, []]);
  });

  it('sessions of a link, and of links made in such a session, end with the key that made the first link', async () => {
    const { id, key } = await makeKey('ann');
    const first = await signIn({ link: await newLink(bearer(key)) });
    const second = await signIn({ link: await newLink(first.headers) });
    const unspent = await newLink(second.headers);
    expect([first.status, second.status]).toEqual([201, 201]);
    expect(await list()).toMatchObject([
      { actor: 'sign-in link', opened_with: 'link', key: { name: 'ann' } },
      { actor: 'sign-in link', opened_with: 'link', key: { name: 'ann' } },
    ]);
    expect(await statusOf(root, 'DELETE', `/api/keys/${id}`)).toBe(204);
    expect([await statusOf(first.headers), await statusOf(second.headers), await list()]).toEqual([401, 401, []]);
    expect((await signIn({ link: unspent })).status).toBe(401);
  });
});

describe('root key of the installation', () => {
  const another = 'another-root-key-of-this-test';

  it('an unchanged root key ends nothing', async () => {
    const signedIn = await browser(rootKey);
    const link = await newLink(root);
    await enforceRootKey(gateway.context, rootKey);
    expect(await statusOf(signedIn)).toBe(200);
    expect((await signIn({ link })).status).toBe(201);
  });

  it('a replaced root key ends every session and link of all keys; a former root key returns without its sessions', async () => {
    const { key: ann } = await makeKey('ann');
    const links = [await newLink(root), await newLink(bearer(ann))];
    const signedIn = [await browser(rootKey), await browser(ann), (await signIn({ link: links.pop() })).headers];
    let revocations = 0;
    const stop = gateway.context.hub.on('revoked', everyone, () => {
      gateway.context.callers.forget();
      revocations++;
    });
    await enforceRootKey(gateway.context, another);
    stop();
    expect(revocations).toBe(1);
    expect(await statusOf(bearer(another))).toBe(200);
    for (const headers of [root, ...signedIn]) expect(await statusOf(headers)).toBe(401);
    for (const link of links) expect((await signIn({ link })).status).toBe(401);
    expect(await statusOf(bearer(ann))).toBe(200);
    await enforceRootKey(gateway.context, rootKey);
    gateway.context.callers.forget();
    expect(await statusOf(root)).toBe(200);
    for (const headers of [bearer(another), ...signedIn]) expect(await statusOf(headers)).toBe(401);
    expect((await events('key.replaced')).map(({ body }) => body['sessions_ended'])).toEqual([0, 3]);
  });

  it('the root key cannot be revoked, and the error explains how to replace it', async () => {
    const { id } = await fleet.control.db.one<{ id: string }>(sql`
      select id from key where created_by = ${installationActor} and revoked_at is null`);
    const signedIn = await browser(rootKey);
    const answer = await gateway.fetch('DELETE', `/api/keys/${id}`, root);
    expect([answer.status, await answer.json()]).toMatchObject([
      409,
      { code: 'conflict', detail: expect.stringContaining('MILLRACE_ROOT_KEY') as unknown },
    ]);
    expect([await statusOf(root), await statusOf(signedIn)]).toEqual([200, 200]);
  });
});

describe('rejected credentials', () => {
  const ask = (remote: string, path: string, init: RequestInit): Promise<Response> =>
    gateway.gateway.fetch(new Request(origin + path, init), remote);
  const guess = (remote: string, credential: object): Promise<Response> =>
    ask(remote, '/api/session', {
      method: 'POST',
      headers: { host: '127.0.0.1', origin, 'content-type': 'application/json' },
      body: JSON.stringify(credential),
    });
  const listRefusals = async (): Promise<unknown[]> => {
    await gateway.context.rejectedCredentials.endPeriod();
    const found = [...(await events('session.refused')), ...(await events('key.refused'))];
    return found.map(({ actor, body }) => [actor, body['with'], body['address'], body['count']]);
  };

  beforeEach(() => fleet.control.db.exec(sql`delete from event`));

  it('the audit shows rejected credentials with kind and address: the first at once, further ones as a number', async () => {
    for (let i = 0; i < 3; i++) {
      await guess('192.0.2.1', { key: `mrk_a-wrong-key-number-${i}` });
      await guess('192.0.2.2', { link: 'mrl_a-link-that-nobody-made' });
      await ask('192.0.2.3', '/api/me', { headers: { ...bearer('mrk_wrong'), host: '127.0.0.1' } });
    }
    await guess('192.0.2.4', { key: '' });
    expect(await listRefusals()).toEqual([
      ['nobody', 'sign-in link', '192.0.2.2', 2],
      ['nobody', 'sign-in key', '192.0.2.1', 2],
      ['nobody', 'sign-in key', '192.0.2.4', 1],
      ['nobody', 'sign-in link', '192.0.2.2', 1],
      ['nobody', 'sign-in key', '192.0.2.1', 1],
      ['nobody', 'header', '192.0.2.3', 2],
      ['nobody', 'header', '192.0.2.3', 1],
    ]);
  });

  it('rejected credentials cause few events, whatever the number of guesses and addresses', async () => {
    for (let i = 0; i < 300; i++) await guess(`192.0.2.${i % 100}`, { key: `mrk_a-wrong-key-number-${i}` });
    const found = await listRefusals();
    expect(found.length).toBeLessThanOrEqual(42);
    expect(found.reduce<number>((sum, row) => sum + Number((row as unknown[])[3]), 0)).toBe(300);
    expect(found[0]).toEqual(['nobody', 'sign-in key', null, 239]);
  });

  it('a browser with an old cookie, or without one, does not count as a rejected credential', async () => {
    await ask('192.0.2.1', '/api/me', {
      headers: { cookie: 'millrace_test=mrs_of-an-old-session', host: '127.0.0.1' },
    });
    await ask('192.0.2.1', '/api/me', { headers: { host: '127.0.0.1' } });
    expect(await listRefusals()).toEqual([]);
  });
});

describe('lists of keys and sessions', () => {
  it('a list is read page by page while sessions are used', async () => {
    const made = await Promise.all(['one', 'two', 'three'].map(makeKey));
    for (const { key } of made) await browser(key);
    const pages = async (path: string): Promise<string[]> =>
      collectPages(async (cursor) => {
        const query = cursor === undefined ? '' : `&cursor=${cursor}`;
        const { items, next } = await read<{ items: Listed[]; next: string | null }>(`${path}?limit=1${query}`, root);
        // using a session moves its expiry, so a list in that order would change between pages
        await fleet.control.db.exec(sql`update session set expires_at = expires_at + random() * interval '1 hour'`);
        return { items: items.map(({ id }) => id), next };
      });
    expect(await pages('/api/keys')).toEqual(expect.arrayContaining(made.map(({ id }) => id)));
    expect((await pages('/api/sessions')).sort()).toEqual((await list()).map(({ id }) => id).sort());
    expect(await list()).toHaveLength(3);
  });
});
