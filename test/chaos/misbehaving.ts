/**
 * Tenants whose scheduler throws, hangs, blocks its process, leaks or ends it, beside a tenant that does nothing wrong. All
 * have one engine version and so, at first, one host. A misbehaving scheduler is stopped with a reason and retried after a
 * growing pause. The innocent tenant runs and goes on firing.
 */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { sql } from '../../src/kernel/sql.ts';
import { usualLimits } from '../../src/hosts/tenant-scheduler.ts';
import { engineBuild, type Mischief, removeEngineBuilds } from '../harness/engine-builds.ts';
import { TestInstallation } from '../harness/installation.ts';
import { millrace } from '../harness/product.ts';
import { until } from '../harness/until.ts';

const version = '0.2.1-test.1';
/** Longest time until a start is given up, plus a pause before the next attempt. */
const oneTryMs = usualLimits.startMs + 30_000;
let world: TestInstallation;

/** `alone`: schedulers that fail by themselves; `together`: schedulers that end their host. */
export function testMisbehaving(alone: readonly (readonly [Mischief, RegExp])[], together: readonly Mischief[]): void {
  beforeAll(async () => {
    world = await TestInstallation.start({ launchers: 1, env: { MILLRACE_HOST_MEMORY: '300' } });
    expect(await millrace(['engine', 'add', await engineBuild({ version })], { env: world.env })).toMatchObject({
      code: 0,
    });
    await create('innocent');
    const start = new Date(Math.ceil(Date.now() / 1_000) * 1_000).toISOString();
    const headers = { authorization: `Bearer ${world.env['MILLRACE_KEY']}`, 'content-type': 'application/json' };
    const document = {
      project: 'p',
      name: 'j',
      description: '',
      triggers: [{ name: 't', start, period: '1s' }],
      tasks: [],
    };
    const post = (path: string, body: object): Promise<Response> =>
      fetch(`${world.url}/t/innocent${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
    expect((await post('/api/projects', { name: 'p' })).status).toBe(201);
    expect((await post('/api/jobs', document)).ok).toBe(true);
  }, 90_000);
  afterAll(async () => {
    await world?.close();
    await removeEngineBuilds();
  });

  it.each(alone)(
    'a scheduler that %s is stopped alone with a reason, and is retried after growing pauses',
    async (mischief, reason) => {
      const { order } = await world.started('innocent');
      await corrupt(mischief, mischief);
      await world.waitUntilNotRunning(mischief, reason, oneTryMs);
      const tries = await until(
        'it was tried again',
        async () => {
          const tenant = await world.call('GET /api/tenants/{name}', { params: { name: mischief } });
          return tenant.failures >= 3 ? tenant : undefined;
        },
        2 * oneTryMs,
      );
      expect(tries.retry_at).not.toBeNull();
      // the innocent tenant was not restarted
      expect((await world.started('innocent')).order).toBe(order);
      await expectFiring();
      await world.call('POST /api/tenants/{name}/stop', { params: { name: mischief } });
    },
    4 * oneTryMs,
  );

  it.each(together)(
    'a scheduler that %s ends its host until it is alone; its neighbour starts again and stays up',
    async (mischief) => {
      await corrupt(mischief, mischief);
      await world.waitUntilNotRunning(mischief, /crashed:/, 40_000);
      const apart = await until(
        'they no longer share a host',
        async () => {
          // after the third loss it has a host of its own; before that, it may come back to the shared host
          if ((await suspicion(mischief)) < 3) return undefined;
          const [guilty, innocent] = await Promise.all([world.placed(mischief), world.placed('innocent')]);
          return innocent?.state === 'STARTED' && guilty?.host !== innocent.host ? innocent : undefined;
        },
        100_000,
      );
      await expectFiring();
      await until('the guilty one has failed once more', async () => (await suspicion(mischief)) >= 4, 100_000);
      expect((await world.started('innocent')).order).toBe(apart.order);
      await world.call('POST /api/tenants/{name}/stop', { params: { name: mischief } });
      await world.inControl((db) => db.exec(sql`update launch set suspicion = 0`));
    },
    240_000,
  );
}

async function create(name: string): Promise<void> {
  await world.call('POST /api/tenants', { body: { name, version } });
  await world.started(name, 30_000);
}

/** Creates a tenant whose scheduler misbehaves from its next start on. */
async function corrupt(name: string, mischief: Mischief): Promise<void> {
  await create(name);
  await world.in(name, (client) => client.query('insert into millrace.build_mischief values ($1)', [mischief]));
  await world.call('POST /api/tenants/{name}/restart', { params: { name } });
}

async function countFirings(): Promise<number> {
  return world.in('innocent', async (client) => {
    const { rows } = await client.query<{ n: number }>('select count(*)::integer as n from millrace.firing');
    return rows[0]?.n ?? 0;
  });
}

async function expectFiring(withinMs = 20_000): Promise<void> {
  await world.started('innocent', withinMs);
  const before = await countFirings();
  await until('the innocent tenant fires', async () => (await countFirings()) >= before + 2, withinMs);
}

async function suspicion(name: string): Promise<number> {
  return world.inControl(async (db) => {
    const row = await db.one<{ suspicion: number }>(sql`
      select suspicion from launch join tenant on tenant.id = tenant_id where name = ${name}`);
    return row.suspicion;
  });
}
