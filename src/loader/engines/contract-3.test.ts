/** The engine of release 0.1.0, as it was built then, loaded by this release. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { makeContext, type TestContext } from '../../../test/harness/engine-context.ts';
import { type FreshDatabase, makeFreshDatabase } from '../../../test/harness/fresh-database.ts';
import { listPending } from '../../../test/harness/list-pending.ts';
import { HandTime } from '../../../test/harness/hand-time.ts';
import { until } from '../../../test/harness/until.ts';
import type { Engine } from '../../contract/engine.ts';
import type { Caller } from '../../contract/roles.ts';
import { engine } from '../../engine/engine.ts';
import { openPool } from '../../postgres/pool/pool.ts';
import { migrateTenant } from '../../tenants/install.ts';
import { Engines, enginesFolder } from './engines.ts';
import { addEngine } from './store.ts';

const tarball = fileURLToPath(new URL('../../../test/fixtures/engine-0.1.0.tgz', import.meta.url));
const noon = '2026-06-01T12:00:00Z';
const operator: Caller = { kind: 'key', role: 'operator', tenantId: null, tenant: null, actor: 'key:tests' };

let home: string;
let database: FreshDatabase;
let old: Engine;
let ctx: TestContext;
let closePool: () => Promise<void>;
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'millrace-former-'));
  await addEngine(home, tarball);
  const found = await new Engines(engine, enginesFolder(home)).find('0.1.0');
  if (!found.ok) throw new Error(found.detail);
  old = found.engine;
  database = await makeFreshDatabase();
  await migrateTenant(database.address, old);
  const pool = openPool({
    address: database.address,
    schema: 'millrace',
    application: 'contract 3',
    max: 8,
    allowPooler: false,
    onError: () => {},
  });
  closePool = () => pool.end();
  ctx = makeContext({ address: database.address, pool, time: new HandTime(Date.parse(noon)) });
  await ctx.hub.service.start();
});
afterAll(async () => {
  await ctx.hub.service.stop();
  await closePool();
  await database.close();
  await rm(home, { recursive: true });
});

async function post(path: string, body: unknown): Promise<unknown> {
  const headers = { 'content-type': 'application/json' };
  const request = new Request(`http://tenant${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
  const answer = await old.fetch(request, ctx, operator);
  expect(answer.status).toBeLessThan(300);
  return answer.json();
}

it('An engine of contract 3 reports its contract, and has neither a bus nor flows', () => {
  expect([old.contract, old.bus, old.flows]).toEqual([3, undefined, undefined]);
});

it('An engine of contract 3 serves its API, fires triggers, hands out runs, accepts results, and sends hints', async () => {
  const ready: unknown[] = [];
  ctx.hub.on('ready', ctx.tenant.id, (lanes) => void ready.push(lanes));
  const scheduler = old.scheduler(ctx);
  await scheduler.start();
  await post('/api/projects', { name: 'former' });
  await post('/api/jobs', {
    project: 'former',
    name: 'job',
    triggers: [{ name: 'once', start: noon, period: '1h' }],
    tasks: [
      { name: 'a', depends: ['trigger/once'], process: { command: ['true'] } },
      { name: 'b', depends: ['task/a'], process: { command: ['true'] } },
    ],
  });
  const poll = { worker: '01900000-0000-7000-8000-000000000001', incarnation: 1, free: 10, lanes: ['process:default'] };
  const finished: string[] = [];
  await until('both tasks have run', async () => {
    const [runs = []] = await old.runs.claim(ctx, [poll]);
    for (const { task, version, tenant } of runs) {
      const key = { tenant, task: task ?? '', version: version ?? 0 };
      const [definition] = await old.runs.definitions(ctx, [key], poll.worker);
      finished.push(definition?.name ?? '');
    }
    const rest = { state: 'success', reason: null, exit_code: 0, started_at: null, worker: poll.worker } as const;
    await old.runs.report(
      ctx,
      runs.map(({ tenant, run, lease }) => ({ tenant, run, lease, ...rest })),
    );
    return finished.length === 2 || undefined;
  });
  expect(finished).toEqual(['a', 'b']);
  expect(ready.length).toBeGreaterThan(0);
  await scheduler.stop();
  expect(ctx.faults).toEqual([]);
});

it('This release upgrades a tenant of contract 3', async () => {
  await migrateTenant(database.address, engine);
  expect(await listPending(database.address, engine)).toEqual([]);
});
