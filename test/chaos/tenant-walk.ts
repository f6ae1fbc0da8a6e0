/**
 * Walks the checkpoints of tenant life and of the launcher. An API is started so that it dies at a checkpoint, and receives
 * the request that leads there. Afterwards the request is repeated, as a user would. Meanwhile launchers die at their own
 * checkpoints. In the end every tenant must be as requested.
 */
import { engineVersion } from '../../src/engine/engine.ts';
import { CallFailed } from '../../src/http/client.ts';
import { type Checkpoint, checkpoints } from '../../src/app/checkpoints.ts';
import { engineBuild, removeEngineBuilds } from '../harness/engine-builds.ts';
import { TestInstallation } from '../harness/installation.ts';
import { millrace } from '../harness/product.ts';
import { until } from '../harness/until.ts';
import type { RoleProcess } from './role-process.ts';
import { differences, type Wish } from './tenant-storm.ts';

const newer = '0.2.1-test.1';
const settleMs = 60_000;

export interface TenantWalked {
  readonly faults: readonly string[];
  /** Checkpoints at which a process died. */
  readonly died: ReadonlySet<Checkpoint>;
}

interface Walk {
  readonly world: TestInstallation;
  readonly wishes: Map<string, Wish>;
  readonly died: Set<Checkpoint>;
  made: number;
}

export async function tenantWalk({ rounds }: { readonly rounds: number }): Promise<TenantWalked> {
  const world = await TestInstallation.start({ launchers: 1 });
  const walk: Walk = { world, wishes: new Map(), died: new Set(), made: 0 };
  try {
    const added = await millrace(['engine', 'add', await engineBuild({ version: newer })], { env: world.env });
    if (added.code !== 0) return { faults: [added.stderr], died: walk.died };
    await world.started('default');
    for (let round = 0; round < rounds; round++) await oneRound(walk);
    const faults = await faultsOf(walk);
    return { faults: faults.length === 0 ? [] : [...faults, world.output()], died: walk.died };
  } finally {
    await world.close();
    await removeEngineBuilds();
  }
}

async function oneRound(walk: Walk): Promise<void> {
  await Promise.all([loseApis(walk), loseLaunchers(walk)]);
}

async function loseApis(walk: Walk): Promise<void> {
  const made = ['tenant.registered', 'tenant.made', 'tenant.told', 'tenant.installed'] as const;
  const names = made.map(() => `t${++walk.made}`);
  for (const [i, checkpoint] of made.entries()) await cutShort(walk, checkpoint, () => create(walk, names[i] ?? ''));
  const [first = '', second = '', third = '', fourth = ''] = names;
  await cutShort(walk, 'tenant.told', () => upgrade(walk, first));
  await cutShort(walk, 'tenant.upgraded', () => upgrade(walk, second));
  await cutShort(walk, 'tenant.stopped', () => drop(walk, third));
  await cutShort(walk, 'tenant.dropped', () => drop(walk, fourth));
}

/** Sends the request to an API that dies on the way, and then to one that does not. */
async function cutShort({ world, died }: Walk, name: Checkpoint, ask: () => Promise<void>): Promise<void> {
  await arm(world.api, name);
  await waitUntilReady(world);
  const asked = ask().catch(() => {});
  await waitForDeath(world.api, name, died);
  await asked;
  await world.api.restart();
  await waitUntilReady(world);
  await ask();
}

/** Restarts the role so that it dies at the checkpoint. */
async function arm(role: RoleProcess, name: Checkpoint): Promise<void> {
  await role.restart({ MILLRACE_CHECKPOINT: name });
}

async function waitUntilReady({ url }: TestInstallation): Promise<void> {
  await until('the API answers', async () => (await fetch(`${url}/readyz`).catch(() => undefined))?.ok, 30_000);
}

async function waitForDeath(role: RoleProcess, name: Checkpoint, died: Set<Checkpoint>): Promise<void> {
  let signal: string | null | undefined;
  void role.ending().then((ending) => (signal = ending.signal ?? String(ending.code)));
  await until(`${role.name} dies at ${name}`, async () => signal, 30_000);
  if (signal !== 'SIGKILL') throw new Error(`${role.name} did not die at ${name}: ${signal}\n${role.output()}`);
  died.add(name);
}

async function create({ world, wishes }: Walk, name: string): Promise<void> {
  await ignoreStatus(409, world.call('POST /api/tenants', { body: { name, version: engineVersion } }));
  wishes.set(name, { version: engineVersion, on: true });
}

async function upgrade({ world, wishes }: Walk, name: string): Promise<void> {
  await world.call('POST /api/tenants/{name}/upgrade', { params: { name }, body: { to: newer } });
  wishes.set(name, { version: newer, on: true });
}

async function drop({ world, wishes }: Walk, name: string): Promise<void> {
  await ignoreStatus(404, world.call('DELETE /api/tenants/{name}', { params: { name } }));
  wishes.delete(name);
}

/** Ignores the status that a repeated request gets if the first one has succeeded. */
async function ignoreStatus(done: number, answer: Promise<unknown>): Promise<void> {
  await answer.catch((error: unknown) => {
    if (!(error instanceof CallFailed) || error.status !== done) throw error;
  });
}

/** For `turn.spawned` the hosts are killed, so that the launcher has to start some. */
async function loseLaunchers({ world, died }: Walk): Promise<void> {
  const [launcher] = world.launchers;
  if (launcher === undefined) return;
  for (const name of checkpoints.launcher) {
    await arm(launcher, name);
    if (name === 'turn.spawned') for (const pid of await world.hosts()) process.kill(pid, 'SIGKILL');
    await waitForDeath(launcher, name, died);
  }
  await launcher.restart();
}

async function faultsOf({ world, wishes }: Walk): Promise<string[]> {
  let faults: string[] = [];
  await until(
    'all tenants are as requested',
    async () => {
      faults = await differences({ world, wishes });
      return faults.length === 0 || undefined;
    },
    settleMs,
  ).catch(() => {});
  return faults;
}
