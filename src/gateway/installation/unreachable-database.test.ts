/** While the control database is unreachable, a caller with a key gets at least the answer of one without. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Fleet, makeFleet } from '../../../test/harness/fleet.ts';
import { makeTestGateway } from '../../../test/harness/gateway.ts';
import { silent } from '../../kernel/log.ts';
import type { Db } from '../../kernel/sql.ts';
import { makeTelemetry } from '../../kernel/telemetry.ts';
import type { DatabaseFault } from '../../postgres/database-health.ts';
import { Callers } from '../access/callers.ts';
import { Gateway } from '../routing/gateway.ts';

let fleet: Fleet;
let gateway: Gateway;
let key: string;
let remembered: string;
const summary = 'the database cannot be reached since 2026-06-01T12:03:00.000Z: ECONNREFUSED';
const detail = `${summary} (connect ECONNREFUSED 10.0.0.7:5432)`;
const fault: DatabaseFault = { kind: 'unreachable', since: new Date('2026-06-01T12:03:00Z'), summary, detail };

beforeAll(async () => {
  fleet = await makeFleet(['default', 'shop']);
  const whole = makeTestGateway(fleet);
  [key, remembered] = [await whole.key('root', null), await whole.key('root', null)];
  const { context, secrets } = whole;
  let isDown = false;
  const control = new Proxy(fleet.control.db, {
    get: (db, name) => (isDown ? refuse : Reflect.get(db, name)),
  });
  const callers = new Callers({ control, secrets, time: fleet.time, cookieName: context.cookieName });
  await callers.byKey(remembered);
  isDown = true;
  gateway = new Gateway({
    context: {
      ...context,
      control,
      life: { ...context.life, control, databaseFault: () => fault },
      callers,
      log: silent,
    },
    telemetry: makeTelemetry(() => {}),
    uiFolder: '/nowhere',
    hostNames: new Set(),
  });
});
afterAll(() => fleet.close());

const refuse: Db['exec'] = async () => {
  throw Object.assign(new Error('connect ECONNREFUSED 10.0.0.7:5432'), { code: 'ECONNREFUSED' });
};

async function ask(path: string, secret?: string): Promise<unknown> {
  const headers = { host: '127.0.0.1', ...(secret !== undefined && { authorization: `Bearer ${secret}` }) };
  const answer = await gateway.fetch(new Request(`http://127.0.0.1${path}`, { headers }));
  return answer.json();
}

it.each(['/healthz', '/readyz'])('GET %s shows since when and why, with a key and without', async (path) => {
  expect(await ask(path)).toMatchObject({ code: 'database_unavailable', detail: summary });
  expect(await ask(path, key)).toMatchObject({ code: 'database_unavailable', detail: summary });
});

it.each(['/api/tenants', '/api/explain/tenant/shop', '/t/shop/api/status'])(
  'GET %s shows since when and why to a key that cannot be looked up',
  async (path) => {
    expect(await ask(path, key)).toMatchObject({ code: 'database_unavailable', detail: summary });
  },
);

it.each(['/healthz', '/api/tenants', '/api/explain/tenant/shop'])(
  'GET %s adds the message of the server for a cached root key',
  async (path) => {
    expect(await ask(path, remembered)).toMatchObject({ code: 'database_unavailable', detail });
  },
);
