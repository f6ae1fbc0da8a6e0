/** The bus at the root of its own port: every call of the bus, with every role, is answered as below the tenant's path. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { endpoints } from '../../../test/harness/access-table.ts';
import { type Fleet, makeFleet } from '../../../test/harness/fleet.ts';
import { makeTestGateway, type TestGateway } from '../../../test/harness/gateway.ts';
import type { Role } from '../../contract/roles.ts';
import { newId } from '../../kernel/id.ts';
import { makeBusFetch } from './bus-fetch.ts';

let fleet: Fleet;
let gateway: TestGateway;
beforeAll(async () => {
  fleet = await makeFleet(['default', 'shop']);
  gateway = makeTestGateway(fleet);
});
afterAll(() => fleet.close());

/** Ids of nothing, so that the walk changes nothing. */
const busCalls = endpoints.flatMap(([call]) => {
  const [method = '', path = ''] = call.split(' ');
  const filled = path.replaceAll(/\{\w+\}/g, () => newId());
  return path.startsWith('/bus/') ? [{ method, path: filled }] : [];
});

type Send = (request: Request) => Promise<Response>;

async function walk(send: Send, prefix: string, key: string | undefined): Promise<Record<string, number>> {
  const answers: Record<string, number> = {};
  for (const { method, path } of busCalls) {
    const headers = { host: '127.0.0.1', ...(key !== undefined && { authorization: `Basic ${btoa(`${key}:x`)}` }) };
    const response = await send(new Request(`http://127.0.0.1${prefix}${path}`, { method, headers }));
    await response.body?.cancel();
    answers[`${method} ${path}`] = response.status;
  }
  return answers;
}

it.each(['root', 'operator', 'viewer', 'client', 'publisher', 'subscriber', 'worker', 'conductor', undefined] as const)(
  'the role %s is answered at the root as at its tenant',
  async (role: Role | undefined) => {
    const isBound = role !== undefined && !['root', 'worker', 'conductor'].includes(role);
    const tenant = isBound ? 'shop' : 'default';
    const key = role && (await gateway.key(role, isBound ? tenant : null));
    const atRoot = makeBusFetch(gateway.gateway, gateway.context);
    const below = await walk((request) => gateway.gateway.fetch(request), `/t/${tenant}`, key);
    const root = await walk(
      (request) => {
        const url = new URL(request.url);
        url.pathname = url.pathname.replace(/^\/bus/, '');
        return atRoot(new Request(url, request), null);
      },
      '',
      key,
    );
    expect(root).toEqual(below);
    expect(Object.values(root).filter((status) => status >= 500)).toEqual([]);
    expect(new Set(Object.values(root)).size).toBeGreaterThan(1);
  },
);

it('a key that is unknown, revoked or missing is offered Basic and Bearer', async () => {
  const atRoot = makeBusFetch(gateway.gateway, gateway.context);
  for (const sent of [{}, { authorization: 'Basic eDp4' }, { authorization: 'Bearer x' }]) {
    const headers = { host: '127.0.0.1', ...sent };
    const response = await atRoot(new Request('http://127.0.0.1/topics', { headers }), null);
    expect(response.status).toBe(401);
    expect(response.headers.get('www-authenticate')).toBe('Basic realm="millrace", Bearer realm="millrace"');
  }
});

it('a path cannot leave the bus', async () => {
  const atRoot = makeBusFetch(gateway.gateway, gateway.context);
  const authorization = `Bearer ${await gateway.key('root', null)}`;
  for (const path of [
    '/../api/keys',
    '/%2e%2e/api/keys',
    '/..%2fapi/keys',
    '//api/keys',
    '/t/shop/api/jobs',
    '/api/me',
  ]) {
    const response = await atRoot(new Request(`http://127.0.0.1${path}`, { headers: { authorization } }), null);
    expect([path, response.status]).toEqual([path, 404]);
  }
});
