import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Fleet, makeFleet } from '../../../test/harness/fleet.ts';
import { makeTestGateway, type TestGateway } from '../../../test/harness/gateway.ts';
import { withoutToken } from './api-tokens.ts';

let fleet: Fleet;
let gateway: TestGateway;
let root: { authorization: string };
beforeAll(async () => {
  fleet = await makeFleet(['default', 'shop']);
  gateway = makeTestGateway(fleet);
  root = { authorization: `Bearer ${await gateway.key('root', null)}` };
});
afterAll(() => fleet.close());

const as = (token: string) => ({ authorization: `Basic ${btoa(`${token}:x`)}` });
const create = (path: string, body: object) => gateway.fetch('POST', path, root, body);
const event = { type: 'noop', url: 'https://example.com/1' };
const publish = async (token: string, path: string): Promise<number> =>
  (await gateway.fetch('POST', path, as(token), event)).status;

it('a token is a client key of the tenant that the path names', async () => {
  const made = await create('/t/shop/bus/api_tokens', { name: 'billing' });
  expect(made.status).toBe(201);
  const { token } = (await made.json()) as { token: string };
  expect(token).toMatch(/^billing--[0-9a-f]{32}$/);
  expect(await publish(token, '/t/shop/bus/topics/made')).toBe(200);
  expect(await publish(token, '/bus/topics/made')).toBe(403);
  const listed = (await (await gateway.fetch('GET', '/t/shop/bus/api_tokens', root)).json()) as object[];
  expect(listed).toMatchObject([{ name: 'billing' }]);
  expect(JSON.stringify(listed)).not.toContain(token);
  expect(await (await gateway.fetch('GET', '/bus/api_tokens', root)).json()).toEqual([]);
});

it('a chosen token is revoked by itself, and keeps its topics when it is created again', async () => {
  const token = 'chosen--0123456789';
  await create('/bus/api_tokens', { name: 'a', token });
  expect(await publish(token, '/bus/topics/chosen')).toBe(200);
  expect((await gateway.fetch('DELETE', `/bus/api_tokens/${token}`, root)).status).toBe(204);
  expect(await publish(token, '/bus/topics/chosen')).toBe(401);
  expect((await create('/bus/api_tokens', { name: 'b', token })).status).toBe(201);
  expect(await publish(token, '/bus/topics/chosen')).toBe(200);
  expect((await create('/t/shop/bus/api_tokens', { name: 'c', token })).status).toBe(409);
});

it.each([{ name: 'a', token: 'short' }, { name: 'A' }, {}, { name: 'a'.repeat(31) }])('%o is refused', async (body) => {
  expect((await create('/bus/api_tokens', body)).status).toBe(400);
});

it('only root may manage tokens, and an unknown token is removed with 204', async () => {
  const operator = { authorization: `Bearer ${await gateway.key('operator', 'default')}` };
  expect((await gateway.fetch('GET', '/bus/api_tokens', operator)).status).toBe(403);
  expect((await gateway.fetch('DELETE', '/bus/api_tokens/not-a-token', root)).status).toBe(204);
});

it('a path is logged without its token', () => {
  expect(withoutToken('/t/shop/bus/api_tokens/secret/x')).toBe('/t/shop/bus/api_tokens/…');
});

it('a rotated key keeps its topics, and its former secret is accepted for a day', async () => {
  const made = await gateway.fetch('POST', '/api/keys', root, { name: 'r', role: 'client' });
  const former = (await made.json()) as { id: string; key: string };
  expect(await publish(former.key, '/bus/topics/rotated')).toBe(200);
  const answer = await gateway.fetch('POST', `/api/keys/${former.id}/rotate`, root);
  expect(answer.status).toBe(201);
  const next = (await answer.json()) as { id: string; key: string };
  expect(await publish(next.key, '/bus/topics/rotated')).toBe(200);
  expect(await publish(former.key, '/bus/topics/rotated')).toBe(200);
  fleet.time.advance(24 * 3_600_000);
  gateway.context.callers.forget();
  expect(await publish(former.key, '/bus/topics/rotated')).toBe(401);
  expect(await publish(next.key, '/bus/topics/rotated')).toBe(200);
});

/** A token with a subscriber, and the second secret of its key. */
async function rotatedToken(name: string): Promise<[string, string]> {
  const made = await create('/bus/api_tokens', { name });
  const { token } = (await made.json()) as { token: string };
  const subscription = { topics: ['kept'], callback: 'https://example.com/' };
  expect((await gateway.fetch('POST', '/bus/subscription', as(token), subscription)).status).toBe(204);
  const listed = (await (await gateway.fetch('GET', '/bus/api_tokens', root)).json()) as Record<string, string>[];
  const id = listed.find((each) => each['name'] === name)?.['token'] ?? '';
  const rotated = await gateway.fetch('POST', `/api/keys/${id}/rotate`, root);
  const { key: next } = (await rotated.json()) as { key: string };
  return [token, next];
}

it('a subscriber is removed if both secrets of a rotated key are revoked at the same moment', async () => {
  for (let round = 0; round < 5; round++) {
    const secrets = await rotatedToken(`at-once-${round}`);
    const ended = await Promise.all(
      secrets.map((secret) => gateway.fetch('DELETE', `/bus/api_tokens/${secret}`, root)),
    );
    expect(ended.map(({ status }) => status)).toEqual([204, 204]);
  }
  const left = await gateway.fetch('GET', '/bus/subscribers', root);
  expect(await left.json()).toEqual([]);
});

it('a subscriber is removed with the last secret of a rotated key, not with the former one', async () => {
  const [token, next] = await rotatedToken('kept');
  const statusOf = async (secret: string) => (await gateway.fetch('GET', '/bus/subscriber', as(secret))).status;
  expect((await gateway.fetch('DELETE', `/bus/api_tokens/${token}`, root)).status).toBe(204);
  expect([await statusOf(token), await statusOf(next)]).toEqual([401, 200]);
  expect((await gateway.fetch('DELETE', `/bus/api_tokens/${next}`, root)).status).toBe(204);
  const left = await gateway.fetch('GET', '/bus/subscribers', root);
  expect(await left.json()).toEqual([]);
});
