/** Tenants at three versions in one installation, in every role: API, schedulers, claims, reports and logs by one worker. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { tenantEndpointsOfGateway } from '../../src/gateway/tenants/endpoints.ts';
import { type Client, makeClient } from '../../src/http/client.ts';
import { onClient, sql } from '../../src/kernel/sql.ts';
import { onDatabase } from '../../src/postgres/address.ts';
import { withClient } from '../../src/postgres/databases.ts';
import { engineBuild, failingMigration, removeEngineBuilds } from '../harness/engine-builds.ts';
import { runTask, shell } from '../harness/one-task.ts';
import { type Answer, type Endpoints, millrace, type Product, removeHome, startProduct } from '../harness/product.ts';
import { controlAddress } from '../harness/second-tenant.ts';
import { until } from '../harness/until.ts';

const [a, b, broken] = ['0.2.1-test.1', '0.2.1-test.2', '0.2.1-test.3'] as const;
const column = 'alter table build_firing add column note text';

let product: Product;
let installation: Client<typeof tenantEndpointsOfGateway>;
beforeAll(async () => {
  product = await startProduct();
  const headers = { authorization: `Bearer ${product.rootKey}` };
  installation = makeClient<typeof tenantEndpointsOfGateway>({ base: product.url, headers });
  // while it runs: nothing is restarted
  for (const build of [
    { version: a },
    { version: b, migrations: [column] },
    { version: broken, migrations: [column, failingMigration] },
  ])
    expect(await engine('add', await engineBuild(build))).toMatchObject({ code: 0 });
  await installation('POST /api/tenants', { body: { name: 'old', version: a } });
  await installation('POST /api/tenants', { body: { name: 'new', version: b } });
  for (const name of ['default', 'old', 'new']) await started(name);
}, 120_000);
afterAll(async () => {
  await product.stop();
  await removeHome(product.home);
  await removeEngineBuilds();
});

const engine = (...args: readonly string[]): Promise<Answer> => millrace(['engine', ...args], { home: product.home });

/** The product as one tenant sees it. */
function seenBy(tenant: string): Product {
  const url = `${product.url}/t/${tenant}`;
  const headers = { authorization: `Bearer ${product.rootKey}` };
  return { ...product, url, call: makeClient<Endpoints>({ base: url, headers }) };
}

function started(name: string): Promise<unknown> {
  return until(
    `${name} is started`,
    async () => {
      const { state } = await installation('GET /api/tenants/{name}', { params: { name } });
      return state === 'STARTED' || undefined;
    },
    60_000,
  );
}

const buildOf = async (tenant: string): Promise<unknown> =>
  Reflect.get(await seenBy(tenant).call('GET /api/status'), 'build');

type Noted = { build: string; at: Date };

async function firings(tenant: string): Promise<Noted[]> {
  const { database } = await installation('GET /api/tenants/{name}', { params: { name: tenant } });
  return withClient(onDatabase(await controlAddress(product.home), database), (client) =>
    onClient(client).rows<Noted>(sql`select build, at from millrace.build_firing order by at`),
  );
}

/** A job that a trigger starts every second. */
async function tick(tenant: string): Promise<string> {
  const { call } = seenBy(tenant);
  await call('PUT /api/projects', { body: { name: 'ticking' } });
  const document = {
    project: 'ticking',
    name: 'tick',
    triggers: [{ name: 'second', start: new Date().toISOString(), period: '1s' }],
    tasks: [{ name: 'say', depends: ['trigger/second'] }],
  };
  const { id } = await call('PUT /api/jobs', { body: JSON.stringify(document) });
  return id;
}

async function succeeded(tenant: string, job: string): Promise<number> {
  const { items } = await seenBy(tenant).call('GET /api/runs', { query: { job, state: 'success' } });
  return items.length;
}

describe('tenants at several versions', () => {
  it('each tenant is served by its own engine', async () => {
    expect(await Promise.all(['default', 'old', 'new'].map(buildOf))).toEqual([undefined, a, b]);
  });

  it('one worker runs the tasks of all tenants, with their logs', async () => {
    const runs = await Promise.all(
      ['default', 'old', 'new'].map((name) => runTask(seenBy(name), shell(`echo "this is ${name}"`))),
    );
    expect(runs.map(({ state, text }) => [state, text])).toEqual([
      ['success', 'this is default\n'],
      ['success', 'this is old\n'],
      ['success', 'this is new\n'],
    ]);
  });

  it('each tenant’s scheduler is of its own engine', async () => {
    for (const [tenant, build] of [
      ['old', a],
      ['new', b],
    ] as const) {
      const job = await tick(tenant);
      await until(`${tenant} has run`, async () => (await succeeded(tenant, job)) > 0 || undefined);
      const noted = await until('it has noted that', async () => {
        const all = await firings(tenant);
        return all.length > 0 ? all : undefined;
      });
      expect(new Set(noted.map((each) => each.build))).toEqual(new Set([build]));
    }
  });

  it('engines are listed with the tenants that use them, and cannot be removed', async () => {
    const { items } = await installation('GET /api/engines');
    expect(items.find(({ version }) => version === a)).toMatchObject({ fault: null, tenants: ['old'] });
    const listed = await engine('list', '--json');
    const engines = JSON.parse(listed.stdout) as { version: string; tenants: string[] }[];
    expect(engines.map(({ version, tenants }) => [version, tenants])).toEqual([
      [broken, []],
      [b, ['new']],
      [a, ['old']],
      [engines.at(-1)?.version, ['default']],
    ]);
    expect(await engine('remove', a)).toMatchObject({ code: 1 });
    expect((await engine('remove', a)).stderr).toContain('is used by 1 tenant (old)');
  });

  it('a tenant keeps its version when an upgrade fails half way', async () => {
    const upgrading = installation('POST /api/tenants/{name}/upgrade', {
      params: { name: 'old' },
      body: { to: broken },
    });
    await expect(upgrading).rejects.toThrow();
    await started('old');
    expect(await buildOf('old')).toBe(a);
    const before = (await firings('old')).length;
    await until('it goes on firing', async () => (await firings('old')).length > before || undefined);
  });

  it('tenants are upgraded one by one, without loss; the old engine does nothing afterwards', {
    timeout: 120_000,
  }, async () => {
    const { call } = seenBy('old');
    const { items } = await call('GET /api/runs', { query: {} });
    const upgraded = await installation('POST /api/tenants/{name}/upgrade', {
      params: { name: 'old' },
      body: { to: b },
    });
    expect(upgraded).toMatchObject({ from: a, to: b, dry_run: false });
    expect(upgraded.migrations).toHaveLength(1);
    expect(await buildOf('old')).toBe(b);
    await started('old');
    const noted = await until('the new one fires', async () => {
      const all = await firings('old');
      return all.some(({ build }) => build === b) ? all : undefined;
    });
    const builds = noted.map(({ build }) => build);
    expect(builds).toEqual(builds.toSorted());
    for (const { id } of items) expect(await call('GET /api/runs/{id}', { params: { id } })).toBeDefined();
    expect(await buildOf('new')).toBe(b);
    expect(await engine('remove', a)).toMatchObject({ code: 0 });
  });
});
