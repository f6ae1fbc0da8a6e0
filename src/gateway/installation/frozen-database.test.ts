/** While the control database is frozen, every read is answered within two seconds. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Fleet, makeFleet } from '../../../test/harness/fleet.ts';
import { makeTestGateway, type TestGateway } from '../../../test/harness/gateway.ts';
import { networkTo } from '../../../test/harness/network.ts';
import { silent } from '../../kernel/log.ts';
import { onPool } from '../../kernel/sql.ts';
import { makeTelemetry } from '../../kernel/telemetry.ts';
import { isStarted } from '../../control/queries.ts';
import { openPool } from '../../postgres/pool/pool.ts';
import { DatabaseHealth } from '../../postgres/database-health.ts';
import { Callers } from '../access/callers.ts';
import { Gateway } from '../routing/gateway.ts';

let fleet: Fleet;
let frozen: Gateway;
let key: string;
let whole: TestGateway;
/** In reverse order of opening. */
const closing: (() => unknown)[] = [];
beforeAll(async () => {
  fleet = await makeFleet(['default', 'shop']);
  whole = makeTestGateway(fleet);
  key = await whole.key('root', null);
  const network = await networkTo(fleet.control.address);
  const pool = openPool({
    address: network.address,
    schema: 'control',
    application: 'millrace frozen',
    max: 2,
    allowPooler: false,
    onError: () => {},
  });
  closing.push(() => network.close());
  const control = onPool(pool);
  await pool.query('select 1');
  const databaseHealth = new DatabaseHealth({ read: () => pool.query('select 1') });
  await databaseHealth.service.start();
  closing.push(() => databaseHealth.service.stop());
  network.fallSilent();
  const { context, secrets } = whole;
  frozen = new Gateway({
    context: {
      ...context,
      control,
      life: { ...context.life, control, databaseFault: () => databaseHealth.fault },
      callers: new Callers({ control, secrets, time: fleet.time, cookieName: context.cookieName }),
      healthy: () => isStarted(control, 'default'),
      log: silent,
    },
    telemetry: makeTelemetry(() => {}),
    uiFolder: '/nowhere',
    hostNames: new Set(),
  });
});
afterAll(async () => {
  for (const close of closing.toReversed()) await close();
  await fleet.close();
});

const paths = [
  '/healthz',
  '/readyz',
  '/api/me',
  '/api/tenants',
  '/api/tenants/shop',
  '/api/installation',
  '/api/explain/tenant/shop',
  '/t/shop/api/overview',
  '/t/shop/api/status',
  '/t/shop/healthz',
  '/openapi.json',
  '/metrics',
  '/api/engines',
  '/api/tenants/shop/messages',
  '/t/shop/api/explain/run/01890a5d-ac96-774b-bcce-b302099a8057',
  '/t/shop/api/projects',
];

it.each(paths)('GET %s answers that the database does not respond', async (path) => {
  const who = path.endsWith('z') ? {} : { authorization: `Bearer ${key}` };
  const headers = { host: '127.0.0.1', ...who };
  const beganMs = performance.now();
  const answer = await frozen.fetch(new Request(`http://127.0.0.1${path}`, { headers }));
  expect(answer.status).toBe(503);
  expect(await answer.json()).toMatchObject({
    code: 'database_unavailable',
    detail: expect.stringMatching(/has not answered/) as unknown,
  });
  expect(performance.now() - beganMs).toBeLessThan(4_000);
});

it('a key that cannot be looked up is not rejected as unknown', async () => {
  const headers = { host: '127.0.0.1', authorization: 'Bearer mrk_of-nobody-that-we-know' };
  const answer = await frozen.fetch(new Request('http://127.0.0.1/api/keys', { method: 'POST', body: '{}', headers }));
  expect(answer.status).toBe(503);
});
