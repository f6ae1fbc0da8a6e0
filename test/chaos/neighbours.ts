/**
 * Four tenants with a trigger each second, and a villain: a fifth tenant of the same engine whose scheduler keeps the
 * process busy, ends it or fills its memory. The lateness of the four is measured in their databases: the time between an
 * instant and the moment its run was queued.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from '../../src/kernel/sql.ts';
import { engineBuild, type Mischief, removeEngineBuilds } from '../harness/engine-builds.ts';
import { TestInstallation } from '../harness/installation.ts';
import { millrace } from '../harness/product.ts';
import { until } from '../harness/until.ts';

const version = '0.1.1-test.1';
const names = ['a', 'b', 'c', 'd'] as const;
/** The aim is 2 s; the rest is for a busy machine. Without the repair it is 8 s at least. */
const maxLatenessMs = 5_000;
/** The control run: how late the four are by themselves. */
const controlMs = 5_000;
let world: TestInstallation;

export function describeNeighbours(villains: readonly Mischief[]): void {
  beforeAll(async () => {
    world = await TestInstallation.start({ launchers: 1, env: { MILLRACE_HOST_MEMORY: '300' } });
    const added = await millrace(['engine', 'add', await engineBuild({ version })], { env: world.env });
    expect(added).toMatchObject({ code: 0 });
    for (const name of names) await createTicking(name);
  }, 120_000);
  afterAll(async () => {
    await world?.close();
    await removeEngineBuilds();
  });

  describe('Four tenants beside a scheduler', () => {
    it.each(villains)(
      'that %s fire in time',
      async (mischief) => {
        const controlFrom = await databaseNow();
        await sleep(controlMs);
        const control = await latenessMs(controlFrom);
        const from = await databaseNow();
        await corrupt(mischief);
        await until('the villain is suspected alone', async () => (await isolated(mischief)) || undefined, 90_000);
        const to = await databaseNow();
        await until('instants after that fired', async () => (await lastInstant()) > to.getTime() + 2_000, 40_000);
        const lateness = await latenessMs(from);
        console.info(`${mischief}: ${Math.round(lateness)} ms late at most; ${Math.round(control)} ms without it`);
        await world.call('POST /api/tenants/{name}/stop', { params: { name: mischief } });
        await world.inControl((db) => db.exec(sql`update launch set suspicion = 0`));
        expect(lateness).toBeLessThan(maxLatenessMs + 2 * control);
      },
      180_000,
    );
  });
}

async function createTicking(name: string): Promise<void> {
  await world.call('POST /api/tenants', { body: { name, version } });
  await world.started(name);
  const start = new Date(Math.ceil(Date.now() / 1_000) * 1_000).toISOString();
  const document = {
    project: 'p',
    name: 'j',
    description: '',
    triggers: [{ name: 't', start, period: '1s' }],
    tasks: [{ name: 'k', depends: ['trigger/t'] }],
  };
  const headers = { authorization: `Bearer ${world.env['MILLRACE_KEY']}`, 'content-type': 'application/json' };
  const post = (path: string, body: object): Promise<Response> =>
    fetch(`${world.url}/t/${name}${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
  expect((await post('/api/projects', { name: 'p' })).status).toBe(201);
  expect((await post('/api/jobs', document)).ok).toBe(true);
}

/** A tenant of that name whose scheduler misbehaves from its next start on. */
async function corrupt(mischief: Mischief): Promise<void> {
  await world.call('POST /api/tenants', { body: { name: mischief, version } });
  await world.started(mischief);
  await world.in(mischief, (client) => client.query('insert into millrace.build_mischief values ($1)', [mischief]));
  await world.call('POST /api/tenants/{name}/restart', { params: { name: mischief } });
}

/** The villain is suspected and has a host for itself, or none; the four run. */
async function isolated(villain: string): Promise<boolean> {
  return world.inControl(async (db) => {
    const rows = await db.rows<{ name: string; state: string; suspicion: number; host: string | null }>(sql`
      select name, state, suspicion, case when ordered then host_id end as host
        from launch join tenant on tenant.id = tenant_id`);
    const its = rows.find(({ name }) => name === villain);
    const others = rows.filter(({ name }) => names.some((each) => each === name));
    return (
      its !== undefined &&
      its.suspicion > 0 &&
      others.every(({ state, host }) => state === 'STARTED' && (its.host === null || host !== its.host))
    );
  });
}

async function databaseNow(): Promise<Date> {
  return world.inControl(async (db) => (await db.one<{ now: Date }>(sql`select clock_timestamp() as now`)).now);
}

async function latenessMs(since: Date): Promise<number> {
  const each = names.map((name) =>
    world.in(name, async (client) => {
      const { rows } = await client.query<{ ms: number }>(
        `select coalesce(max(extract(epoch from queued_at - instant) * 1000), 0)::float8 as ms
           from millrace.live where instant >= $1`,
        [since],
      );
      return rows[0]?.ms ?? 0;
    }),
  );
  return Math.max(...(await Promise.all(each)));
}

/** Of the four, the one that is furthest behind. */
async function lastInstant(): Promise<number> {
  const each = names.map((name) =>
    world.in(name, async (client) => {
      const { rows } = await client.query<{ at: Date | null }>('select max(instant) as at from millrace.firing');
      return rows[0]?.at?.getTime() ?? 0;
    }),
  );
  return Math.min(...(await Promise.all(each)));
}
