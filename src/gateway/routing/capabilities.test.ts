import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Fleet, makeFleet } from '../../../test/harness/fleet.ts';
import { makeTestGateway, type TestGateway } from '../../../test/harness/gateway.ts';
import type { BusEngine } from '../../contract/bus.ts';
import { engine } from '../../engine/engine.ts';
import { groupOf, requireGroup } from './capabilities.ts';

let fleet: Fleet;
let gateway: TestGateway;
beforeAll(async () => {
  const { bus: _, flows: __, ...former } = engine;
  fleet = await makeFleet(['default', 'shop']);
  gateway = makeTestGateway(fleet, fleet.newLoader({ engines: [former] }));
});
afterAll(() => fleet.close());

it.each([
  ['/bus/topics/orders', 'bus'],
  ['/api/errands', 'bus'],
  ['/api/errands/retry', 'bus'],
  ['/api/flows', 'flows'],
  ['/api/flow-schema', 'flows'],
  ['/api/executions/1', 'flows'],
  ['/api/workitems', 'flows'],
  ['/api/jobs', undefined],
  ['/api/flowsheets', undefined],
  ['/business', undefined],
])('the group that serves %s is %s', (path, group) => expect(groupOf(path)).toBe(group));

it.each([
  ['POST', '/t/shop/bus/topics/orders', 503, 'no_bus', 'tenant shop'],
  ['GET', '/bus/topics', 503, 'no_bus', 'tenant default'],
  ['GET', '/t/shop/api/flows', 501, 'not_supported', 'tenant shop'],
  ['GET', '/api/executions/1', 501, 'not_supported', 'tenant default'],
])('%s %s is answered with %i %s if the engine lacks the group', async (method, path, status, code, tenant) => {
  const headers = { authorization: `Bearer ${await gateway.key('root', null)}` };
  const answer = await gateway.fetch(method, path, headers, method === 'POST' ? {} : undefined);
  expect(answer.status).toBe(status);
  const problem = (await answer.json()) as { code: string; detail: string };
  expect(problem.code).toBe(code);
  expect(problem.detail).toContain(tenant);
});

it('an engine with the group passes the check', () => {
  const bus = {} as BusEngine;
  expect(() => requireGroup({ version: '1.0.0', bus }, 'bus', 'shop')).not.toThrow();
  expect(() => requireGroup({ version: '1.0.0', bus }, 'flows', 'shop')).toThrow('1.0.0, has no flows');
});
