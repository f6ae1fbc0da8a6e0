/**
 * Launchers and hosts are killed one after the other, in an order that a seed decides, while tenants are created, upgraded,
 * stopped, started and dropped. Afterwards every tenant must be as requested: a tenant that should run has one scheduler
 * and the right version, a dropped tenant is gone, and nothing is left behind.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { engineVersion } from '../../src/engine/engine.ts';
import { CallFailed } from '../../src/http/client.ts';
import { sql } from '../../src/kernel/sql.ts';
import { engineBuild, removeEngineBuilds } from '../harness/engine-builds.ts';
import { TestInstallation } from '../harness/installation.ts';
import { millrace } from '../harness/product.ts';
import { until } from '../harness/until.ts';
import { type Dice, makeDice } from './dice.ts';

export interface TenantStormOptions {
  readonly seed: number;
  readonly kills: number;
  /** Maximum number of tenants at once. */
  readonly tenants: number;
}

/** An upgrade leads from the first version to the second. */
const versions = [engineVersion, '0.2.1-test.1'] as const;

/** The requested state of a tenant: its version, and whether it runs. */
export type Wish = { version: string; on: boolean };

interface Scene {
  readonly world: TestInstallation;
  readonly dice: Dice;
  readonly options: TenantStormOptions;
  readonly wishes: Map<string, Wish>;
  readonly log: string[];
  made: number;
}

const settleMs = 90_000;

/** Returns the differences between the requested and the actual state. */
export async function tenantStormIn(options: TenantStormOptions): Promise<string[]> {
  const world = await TestInstallation.start({ launchers: 2 });
  try {
    const added = await millrace(['engine', 'add', await engineBuild({ version: versions[1] })], { env: world.env });
    if (added.code !== 0) return [added.stderr];
    await world.started('default');
    return await tenantStorm(world, options);
  } finally {
    await world.close();
    await removeEngineBuilds();
  }
}

async function tenantStorm(world: TestInstallation, options: TenantStormOptions): Promise<string[]> {
  const scene: Scene = { world, dice: makeDice(options.seed), options, wishes: new Map(), log: [], made: 0 };
  const over = new AbortController();
  const living = live(scene, over.signal);
  for (let kill = 0; kill < options.kills; kill++) {
    await strike(scene);
    await sleep(scene.dice.upTo(3_000));
  }
  over.abort();
  await living;
  return faultsOf(scene);
}

/** One kill in three hits a launcher; the others hit a host, if there is any. */
async function strike({ world, dice, log }: Scene): Promise<void> {
  const hosts = await world.hosts().catch(() => []);
  if (hosts.length === 0 || dice.upTo(3) === 0) {
    const launcher = dice.next(world.launchers);
    log.push(`kill ${launcher.name}`);
    launcher.signal('SIGKILL');
    return;
  }
  const pid = dice.next(hosts);
  log.push(`kill host ${pid}`);
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // the host has already ended
  }
}

async function live(scene: Scene, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await change(scene);
    await sleep(scene.dice.upTo(300));
  }
}

async function change(scene: Scene): Promise<void> {
  const { dice, wishes, options } = scene;
  if (wishes.size < options.tenants / 2) return make(scene);
  const name = dice.next([...wishes.keys()]);
  const wish = wishes.get(name);
  const kind = dice.upTo(10);
  if (wish === undefined) return;
  if (kind < 3 && wishes.size < options.tenants) return make(scene);
  if (kind < 5 && wish.version === versions[0]) return upgrade(scene, name, wish);
  if (kind < 7) return toggle(scene, name, wish);
  if (kind < 8)
    return retryUntilDone(scene, `restart ${name}`, async () => {
      await scene.world.call('POST /api/tenants/{name}/restart', { params: { name } });
      wish.on = true;
    });
  return drop(scene, name);
}

async function make(scene: Scene): Promise<void> {
  const name = `t${++scene.made}`;
  const [version] = versions;
  await retryUntilDone(
    scene,
    `create ${name}`,
    () => scene.world.call('POST /api/tenants', { body: { name, version } }),
    409,
  );
  scene.wishes.set(name, { version, on: true });
}

async function upgrade(scene: Scene, name: string, wish: Wish): Promise<void> {
  const [, to] = versions;
  await retryUntilDone(scene, `upgrade ${name}`, () =>
    scene.world.call('POST /api/tenants/{name}/upgrade', { params: { name }, body: { to } }),
  );
  wish.version = to;
}

async function toggle(scene: Scene, name: string, wish: Wish): Promise<void> {
  await retryUntilDone(scene, `${wish.on ? 'stop' : 'start'} ${name}`, () =>
    wish.on
      ? scene.world.call('POST /api/tenants/{name}/stop', { params: { name } })
      : scene.world.call('POST /api/tenants/{name}/start', { params: { name } }),
  );
  wish.on = !wish.on;
}

async function drop(scene: Scene, name: string): Promise<void> {
  await retryUntilDone(
    scene,
    `drop ${name}`,
    () => scene.world.call('DELETE /api/tenants/{name}', { params: { name } }),
    404,
  );
  scene.wishes.delete(name);
}

/** Retries while a server is away, as a user would. `doneStatus`: the status if an earlier try succeeded unanswered. */
async function retryUntilDone(
  scene: Scene,
  what: string,
  work: () => Promise<unknown>,
  doneStatus?: number,
): Promise<void> {
  scene.log.push(what);
  await until(
    what,
    async () => {
      try {
        await work();
        return true;
      } catch (error) {
        if (error instanceof CallFailed && error.status === doneStatus) return true;
        if (error instanceof CallFailed && error.status < 500) throw error;
        return undefined;
      }
    },
    60_000,
  );
}

async function faultsOf(scene: Scene): Promise<string[]> {
  let faults: string[] = [];
  await until(
    'all tenants are as requested',
    async () => {
      faults = await differences(scene);
      return faults.length === 0 || undefined;
    },
    settleMs,
  ).catch(() => {});
  return faults.length === 0 ? [] : [...faults, ...scene.log, scene.world.output()];
}

/** The differences between requested and actual state at this moment. */
export async function differences({
  world,
  wishes,
}: {
  readonly world: TestInstallation;
  readonly wishes: ReadonlyMap<string, Wish>;
}): Promise<string[]> {
  const { items } = await world.call('GET /api/tenants');
  const found = new Map(items.map((tenant) => [tenant.name, tenant]));
  const faults: string[] = [];
  for (const [name, wish] of wishes) {
    const tenant = found.get(name);
    if (tenant === undefined) faults.push(`${name} is missing`);
    else if ((tenant.state === 'STARTED') !== wish.on || tenant.version !== wish.version)
      faults.push(`${name} should be ${JSON.stringify(wish)}, is ${tenant.state} ${tenant.version}: ${tenant.reason}`);
  }
  for (const { name, database } of items)
    if (!wishes.has(name) && name !== 'default') faults.push(`${name} (${database}) should not exist`);
  const running = [...wishes.values()].filter(({ on }) => on).length + 1;
  const schedulers = await world.schedulers();
  if (schedulers !== running) faults.push(`${schedulers} schedulers hold their lock, not ${running}`);
  return [...faults, ...(await leftovers(world))];
}

/** Slots without an owner, and unsettled messages. */
async function leftovers(world: TestInstallation): Promise<string[]> {
  return world.inControl(async (db) => {
    const slots = await db.rows<{ kind: string; n: number }>(sql`
      select kind, count(*)::integer as n from slot where granted_at is not null group by kind`);
    const launched = await db.one<{ n: number }>(sql`
      select count(*)::integer as n from launch where state in ('ALLOCATED', 'STARTED')`);
    const open = await db.one<{ n: number }>(sql`select count(*)::integer as n from message where settled_at is null`);
    const of = (kind: string): number => slots.find((slot) => slot.kind === kind)?.n ?? 0;
    return [
      ...(of('launcher') === 1 ? [] : [`${of('launcher')} slots of launchers`]),
      ...(of('scheduler') === launched.n ? [] : [`${of('scheduler')} slots for ${launched.n} schedulers`]),
      ...(open.n === 0 ? [] : [`${open.n} messages are not settled`]),
    ];
  });
}
