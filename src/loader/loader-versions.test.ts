/** Two real engine builds in one process: each tenant is served by its own engine, and by the new one after an upgrade. */
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import {
  engineBuild,
  failingMigration,
  type Mischief,
  removeEngineBuilds,
  slowMigration,
} from '../../test/harness/engine-builds.ts';
import { textWith } from '../../test/harness/expected.ts';
import { type Fleet, makeFleet, opened } from '../../test/harness/fleet.ts';
import { type FreshDatabase, makeFreshDatabase } from '../../test/harness/fresh-database.ts';
import { applyDocument, makeProject } from '../../test/harness/pipeline.ts';
import { until } from '../../test/harness/until.ts';
import type { Engine } from '../contract/engine.ts';
import type { Caller } from '../contract/roles.ts';
import { engine, engineVersion } from '../engine/engine.ts';
import { knownError, MillraceError } from '../errors.ts';
import { problemResponse } from '../http/router.ts';
import { newId } from '../kernel/id.ts';
import { onPool, sql } from '../kernel/sql.ts';
import { withClient } from '../postgres/databases.ts';
import { registerTenant, type TenantRow } from '../control/queries.ts';
import { Engines } from './engines/engines.ts';
import { listPending } from '../../test/harness/list-pending.ts';
import { migrateTenant } from '../tenants/install.ts';
import type { Loader } from './loader.ts';

const [a, b, broken, slow] = ['0.2.1-test.1', '0.2.1-test.2', '0.2.1-test.3', '0.2.1-test.4'];
const column = 'alter table build_firing add column note text';
const root: Caller = { kind: 'key', role: 'root', tenantId: null, tenant: null, actor: 'root' };

let fleet: Fleet;
let folder: string;
let engines: Engines;
const databases: FreshDatabase[] = [];
beforeAll(async () => {
  fleet = await makeFleet([]);
  folder = await mkdtemp(join(tmpdir(), 'millrace-engines-'));
  const builds = [
    { version: a },
    { version: b, migrations: [column] },
    { version: broken, migrations: [column, failingMigration] },
    { version: slow, migrations: [column, slowMigration(1)] },
  ];
  for (const build of builds) await cp(await engineBuild(build), join(folder, build.version), { recursive: true });
  engines = new Engines(engine, folder);
});
afterAll(async () => {
  await fleet.close();
  await Promise.all(databases.map((database) => database.close()));
  await rm(folder, { recursive: true });
  await removeEngineBuilds();
});

const engineOf = async (version: string): Promise<Engine> => {
  const found = await engines.find(version);
  if (!found.ok) throw new Error(found.detail);
  return found.engine;
};

async function tenantAt(name: string, version: string): Promise<{ row: TenantRow; database: FreshDatabase }> {
  const database = await makeFreshDatabase();
  databases.push(database);
  await migrateTenant(database.address, await engineOf(version));
  const row = { id: newId(), name, database: database.address.database };
  await registerTenant(fleet.control.db, { ...row, at: new Date() });
  return { row: { ...row, desired: 'on' }, database };
}

async function status(loader: Loader, name: string): Promise<unknown> {
  return (await loader.fetch(await loader.find(name), new Request('http://x/api/status'), root)).json();
}

/** The essence of `POST /api/tenants/{name}/upgrade`: it notifies all processes once the transaction has begun. */
async function upgrade(row: TenantRow, database: FreshDatabase, version: string): Promise<string[]> {
  const changed = (): void => fleet.hub.send('tenant', row.id, true);
  try {
    return await migrateTenant(database.address, await engineOf(version), {
      onBegin: async () => changed(),
      remind: changed,
    });
  } finally {
    changed();
  }
}

describe('two versions in one process', () => {
  it('two engines serve their tenants at the same time, each with its own code and schema', async () => {
    await Promise.all([tenantAt('one', a), tenantAt('two', b), tenantAt('three', engineVersion)]);
    const loader = fleet.newLoader({ engines });
    const answers = await Promise.all(['one', 'two', 'three'].map((name) => status(loader, name)));
    const counts = { num_projects: 0, num_workers: 0, running_tasks: 0 };
    expect(answers).toEqual([{ build: a, ...counts }, { build: b, ...counts }, counts]);
    const { ctx } = await opened(loader, 'two');
    expect(await onPool(ctx.pool).rows(sql`select note from build_firing`)).toEqual([]);
  });

  it('a busy tenant changes its engine when another version was written without the lock', async () => {
    const { database } = await tenantAt('edited', a);
    const loader = fleet.newLoader({ engines });
    expect(await status(loader, 'edited')).toMatchObject({ build: a });
    const next = await engineOf(b);
    await withClient(database.address, async (client) => {
      await client.query('begin');
      await next.migrate(client);
      await client.query('commit');
    });
    await until('the new engine answers', async () => {
      const { build } = (await status(loader, 'edited')) as { build: string };
      return build === b || undefined;
    });
  });

  it('two engines run their schedulers at the same time', async () => {
    const tenants = [await tenantAt('fires a', a), await tenantAt('fires b', b)];
    const loader = fleet.newLoader({ engines });
    const open = await Promise.all(tenants.map(({ row }) => loader.open(row)));
    for (const { ctx } of open) {
      const db = onPool(ctx.pool);
      await makeProject(db, 'p');
      const start = new Date(fleet.time.now() + 60_000).toISOString();
      const triggers = [{ name: 't', start, period: '1m' }];
      const tasks = [{ name: 'a', depends: ['trigger/t'] }];
      await applyDocument(db, { project: 'p', name: 'j', description: '', triggers, tasks });
    }
    const schedulers = open.map((tenant) => tenant.engine.scheduler(tenant.ctx));
    for (const scheduler of schedulers) await scheduler.start();
    fleet.time.advance(60_000);
    const noted = await Promise.all(
      open.map(({ ctx }) =>
        until('it has fired', () => onPool(ctx.pool).maybeOne(sql`select build, fired from build_firing`)),
      ),
    );
    for (const scheduler of schedulers) await scheduler.stop();
    expect(noted).toEqual([
      { build: a, fired: 1 },
      { build: b, fired: 1 },
    ]);
  });

  it('a scheduler that fails does not affect another one', async () => {
    const tenants = [await tenantAt('bad', a), await tenantAt('good', a)];
    const loader = fleet.newLoader({ engines });
    const [bad, good] = await Promise.all(tenants.map(({ row }) => loader.open(row)));
    const kinds: readonly Mischief[] = ['throws'];
    await bad?.ctx.pool.query('insert into build_mischief select * from unnest($1::text[])', [kinds]);
    await expect(bad?.engine.scheduler(bad.ctx).start()).rejects.toThrow('mischief: it will not start');
    const neighbour = good?.engine.scheduler(good.ctx);
    await neighbour?.start();
    await neighbour?.probe();
    await neighbour?.stop();
  });

  it('the shell recognizes errors of another engine, although their class differs', async () => {
    await tenantAt('refusing', a);
    const { engine: own, ctx } = await opened(fleet.newLoader({ engines }), 'refusing');
    const refused: unknown = await own.runs
      .stash(ctx, { tenant: 'refusing', run: newId(), lease: 1 }, ['x'])
      .catch((error: unknown) => error);
    expect(refused).not.toBeInstanceOf(MillraceError);
    const onFault = vi.fn();
    const answer = problemResponse(refused, onFault);
    expect(answer.status).toBe(knownError(refused)?.status);
    expect(answer.status).toBeLessThan(500);
    expect(onFault).not.toHaveBeenCalled();
  });

  it('connections carry the version of their engine in their name', async () => {
    const { row } = await tenantAt('a-name-that-is-longer-than-what-postgresql-would-keep-of-it', a);
    const loader = fleet.newLoader({ engines, application: 'millrace api' });
    const { ctx } = await loader.open(row);
    const { name } = await onPool(ctx.pool).one<{ name: string }>(
      sql`select current_setting('application_name') as name`,
    );
    expect(name).toBe(`millrace api ${a} ${row.name}`.slice(0, 63));
  });
});

describe('upgraded tenant', () => {
  it('an upgraded tenant keeps its data; connections of the old engine are closed at once (I6)', async () => {
    const { row, database } = await tenantAt('moving', a);
    const loader = fleet.newLoader({ engines });
    const before = await opened(loader, 'moving');
    await makeProject(onPool(before.ctx.pool), 'p');
    expect(await status(loader, 'moving')).toMatchObject({ build: a, num_projects: 1 });
    const pending = await listPending(database.address, await engineOf(b));
    expect(pending).toEqual([textWith('_build_2.sql')]);
    expect(await upgrade(row, database, b)).toEqual(pending);
    expect(before.ctx.pool.ending).toBe(true);
    expect(await status(loader, 'moving')).toMatchObject({ build: b, num_projects: 1 });
  });

  it('a tenant is never downgraded', async () => {
    const { database } = await tenantAt('ahead', b);
    const refused = { name: 'MillraceError', code: 'conflict', message: `the tenant is at ${b}; engine ${a} is older` };
    await expect(listPending(database.address, await engineOf(a))).rejects.toMatchObject(refused);
    await expect(migrateTenant(database.address, await engineOf(a))).rejects.toMatchObject(refused);
  });

  it('a tenant keeps its version when a migration fails half way', async () => {
    const { row, database } = await tenantAt('unlucky', a);
    const loader = fleet.newLoader({ engines });
    await status(loader, 'unlucky');
    await expect(upgrade(row, database, broken)).rejects.toThrow('_build_3.sql failed');
    expect(await status(loader, 'unlucky')).toMatchObject({ build: a });
    const { ctx } = await opened(loader, 'unlucky');
    expect(await onPool(ctx.pool).rows(sql`select 1 from pg_tables where tablename = 'half_way'`)).toEqual([]);
  });

  it('requests during an upgrade are answered by the new engine when it is done', async () => {
    const { row, database } = await tenantAt('busy', a);
    const loader = fleet.newLoader({ engines });
    await status(loader, 'busy');
    const upgrading = upgrade(row, database, slow);
    const answers: unknown[] = [];
    let done = false;
    const asking = (async () => {
      while (!done) answers.push(await status(loader, 'busy'));
    })();
    await upgrading;
    await until(
      'the new one answers',
      async () => answers.some((each) => JSON.stringify(each).includes(slow)) || undefined,
    );
    done = true;
    await asking;
    const builds = answers.map((each) => (each as { build: string }).build);
    expect(builds).toEqual(builds.toSorted());
    expect(new Set(builds)).toEqual(new Set([a, slow].filter((each) => builds.includes(each))));
  });

  it('an upgrade by a tool that sends no notification is noticed by the next connection, and the request repeated', async () => {
    const { row, database } = await tenantAt('untold', a);
    const loader = fleet.newLoader({ engines });
    const { ctx } = await loader.open(row);
    // nothing is connected when it happens
    expect(ctx.pool.totalCount).toBe(0);
    await migrateTenant(database.address, await engineOf(b));
    expect(await status(loader, 'untold')).toMatchObject({ build: b });
    expect(ctx.pool.ending).toBe(true);
  });
});
