/**
 * Access to the event bus by trying: what a client may do with what belongs to another client, which secrets are shown to whom,
 * and the same table of endpoints on the port of the bus. access.test.ts walks the table on the main port.
 */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Role, roles } from '../../src/contract/roles.ts';
import { makeClient } from '../../src/http/client.ts';
import { newId } from '../../src/kernel/id.ts';
import { accessOf, endpoints } from '../harness/access-table.ts';
import { ask, bearer } from '../harness/ask.ts';
import { lastingPort } from '../harness/lasting-port.ts';
import { type Endpoints, type Product, removeHome, startProduct } from '../harness/product.ts';
import { until } from '../harness/until.ts';

let product: Product;
let busUrl: string;
let secrets: Record<Role, string>;

beforeAll(async () => {
  const busPort = await lastingPort();
  busUrl = `http://127.0.0.1:${busPort}`;
  product = await startProduct({ args: ['--no-worker'], env: { MILLRACE_BUS_PORT: String(busPort) } });
  const made = await Promise.all(roles.map(async (role) => [role, await makeKey(role)] as const));
  secrets = Object.fromEntries(made) as Record<Role, string>;
});
afterAll(async () => {
  await product.stop();
  await removeHome(product.home);
});

async function makeKey(role: Role): Promise<string> {
  return (await product.call('POST /api/keys', { body: { name: `a ${role}`, role } })).key;
}

/** The status alone: a stream has no end of its own. */
async function statusOf(method: string, url: string, key: string | undefined, body?: object): Promise<number> {
  const headers = { 'content-type': 'application/json', ...(key === undefined ? {} : bearer(key)) };
  const sent = body === undefined ? {} : { body: JSON.stringify(body) };
  const response = await fetch(url, { method, headers, ...sent });
  await response.body?.cancel();
  return response.status;
}

/** A client with a topic and a subscriber of its own. */
interface Party {
  readonly key: string;
  readonly call: Product['call'];
  /** The name of its subscriber. */
  readonly subscriber: string;
  readonly id: string;
}
let ours: Party;
let theirs: Party;
let letter: string;
let batch: string;
const userName = 'a user name that is a secret';

async function makeParty(name: string): Promise<Party> {
  const key = await makeKey('client');
  const call = makeClient<Endpoints>({ base: product.url, headers: bearer(key) });
  const kind = 'pull' as const;
  await call('POST /bus/subscriber', { body: { topics: [name], kind, timeout: 0, uuid: userName, max_attempts: 1 } });
  const { subscriber, id } = await call('GET /bus/subscriber');
  return { key, call, subscriber, id };
}

async function publishAs(key: string, topic: string, more: object = {}): Promise<number> {
  const event = { type: 'update', url: 'https://example.com/1', ...more };
  return statusOf('POST', `${product.url}/bus/topics/${topic}`, key, event);
}

beforeAll(async () => {
  [ours, theirs] = [await makeParty('ours'), await makeParty('theirs')];
  expect(await publishAs(theirs.key, 'theirs')).toBe(200);
  letter = await buryNext(theirs);
  const targeted = { target: theirs.subscriber, data: { for: 'them' } };
  expect(await publishAs(theirs.key, 'theirs', targeted)).toBe(200);
  batch = await take(theirs);
});

async function take({ call }: Party): Promise<string> {
  return until('there is a batch', async () => {
    // without one, the answer has no body
    const taken = await call('GET /bus/subscriber/batch', { query: { wait: 1 } });
    return (taken as { id?: string } | undefined)?.id;
  });
}

/** Gives the next batch back. After one attempt, that makes it a dead letter. */
async function buryNext(party: Party): Promise<string> {
  const { call } = party;
  await call('POST /bus/subscriber/batch/{id}/nack', { params: { id: await take(party) }, body: {} });
  return until('it is a dead letter', async () => {
    await call('GET /bus/subscriber/batch');
    return (await call('GET /bus/dead_letters')).items[0]?.id;
  });
}

it('a client neither changes nor takes what belongs to another client', async () => {
  const named = `subscriber=${theirs.subscriber}`;
  const attempts: [string, string, object?][] = [
    ['POST', '/bus/topics/theirs', { type: 'update', url: 'https://example.com/1' }],
    ['DELETE', '/bus/topics/theirs'],
    ['PUT', '/bus/topics/theirs/owner', { id: newId(), name: 'me' }],
    ['GET', `/bus/subscribers/${theirs.id}`],
    ['PATCH', `/bus/subscribers/${theirs.id}`, { max: 1 }],
    ['POST', `/bus/subscribers/${theirs.id}/pause`, {}],
    ['DELETE', `/bus/subscribers/${theirs.id}`],
    ['POST', `/bus/subscriber/batch/${batch}/ack`, {}],
    ['POST', `/bus/subscriber/batch/${batch}/nack`, {}],
    ['POST', `/bus/subscriber/batch/${batch}/extend`, {}],
    ['GET', `/bus/dead_letters?${named}`],
    ['DELETE', `/bus/dead_letters?${named}`],
    ['POST', `/bus/dead_letters/replay?${named}`],
    ['GET', `/bus/dead_letters/${letter}`],
    ['DELETE', `/bus/dead_letters/${letter}`],
    ['POST', `/bus/dead_letters/${letter}/replay`],
    ['GET', `/api/explain/delivery/${theirs.id}`],
    ['GET', `/api/explain/delivery/${theirs.subscriber}`],
  ];
  for (const [method, path, body] of attempts) {
    const status = await statusOf(method, product.url + path, ours.key, body);
    expect([method, path, [403, 404, 409].includes(status) ? 'refused' : status]).toEqual([method, path, 'refused']);
  }
  const letters = await ours.call('GET /bus/dead_letters');
  expect(letters.items).toEqual([]);
  expect((await theirs.call('GET /bus/dead_letters')).items.map(({ id }) => id)).toEqual([letter]);
  await theirs.call('POST /bus/subscriber/batch/{id}/ack', { params: { id: batch }, body: {} });
});

it('user names, secrets and events for one subscriber are shown to its own key only', async () => {
  const { secret } = await theirs.call('POST /bus/subscriber/secret', { body: {} });
  const paths = [
    '/bus/subscribers',
    '/bus/subscriptions',
    `/bus/subscribers/${theirs.id}`,
    '/bus/events',
    '/bus/export',
    '/api/audit',
  ];
  for (const who of ['viewer', 'operator', 'subscriber'] as const) {
    for (const path of paths) {
      const { text } = await ask(product.url + path, { headers: bearer(secrets[who]) });
      for (const hidden of [userName, secret.slice(6), '"for":"them"'])
        expect([who, path, text.includes(hidden)]).toEqual([who, path, false]);
    }
  }
  const { text } = await ask(`${product.url}/bus/events`, { headers: bearer(theirs.key ?? '') });
  expect(text).toContain('"for":"them"');
  expect((await theirs.call('GET /bus/subscriber')).uuid).toBe(userName);
});

it.each(['publisher', 'subscriber', 'worker', 'viewer'] as const)(
  'the role %s cannot publish or subscribe beyond its own',
  async (who) => {
    expect(await publishAs(secrets[who], 'theirs')).toBe(403);
    if (who !== 'subscriber') {
      const wish = { topics: ['theirs'], kind: 'pull', timeout: 0 };
      expect(await statusOf('POST', `${product.url}/bus/subscriber`, secrets[who], wish)).toBe(403);
    }
  },
);

/** Ids of nothing, so that the walk changes nothing. */
function filled(path: string): string {
  return path.replaceAll(/\{\w+\}/g, () => newId());
}

it.each(['nobody', 'root', 'viewer', 'operator', 'client', 'publisher', 'subscriber', 'worker'] as const)(
  'the port of the bus allows %s what the table allows',
  async (who) => {
    const bus = endpoints.filter(([key]) => key.includes(' /bus/'));
    expect(bus.length).toBeGreaterThan(50);
    const refused = who === 'nobody' ? 401 : 403;
    for (const [key, endpoint] of bus) {
      const [method = '', path = ''] = key.split(' ');
      const isAllowed = who === 'root' || accessOf(key, endpoint, who) !== '';
      const url = busUrl + filled(path.replace('/bus', ''));
      const status = await statusOf(method, url, who === 'nobody' ? undefined : secrets[who]);
      const verdict = status === 401 || status === 403 || status >= 500 ? status : 'let in';
      expect([key, verdict]).toEqual([key, isAllowed ? 'let in' : refused]);
    }
  },
);

it.each(['/api/jobs', '/api/keys', '/internal/claim', '/metrics', '/../api/jobs', '/%2e%2e/api/keys', '/docs', '/'])(
  'the port of the bus does not serve %s',
  async (path) => {
    expect(await statusOf('GET', busUrl + path, secrets.root)).toBe(404);
  },
);
